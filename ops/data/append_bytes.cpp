// Compiled as C++23, whose library can lengthen a string without writing zeros first: a tenth of
// the time that a record of a TFRecord file takes.
#include "ops/data/append_bytes.hpp"

namespace troupe {

Status append_bytes(std::string& out, std::size_t bytes, std::size_t more,
                    FunctionRef<Status(std::span<char>)> fill) {
  const std::size_t before = out.size();
#ifdef __cpp_lib_string_resize_and_overwrite
  Status status;
  out.resize_and_overwrite(before + bytes + more, [&](char* data, std::size_t) {
    status = fill({data + before, bytes + more});
    return status.ok() ? before + bytes : before;
  });
#else
  out.resize(before + bytes + more);
  Status status = fill(std::span(out).subspan(before));
  out.resize(status.ok() ? before + bytes : before);
#endif
  return status;
}

}  // namespace troupe
