#include "devices/cuda/cublaslt.hpp"

namespace troupe::cuda {

Status CublasLt::check(LtResult result, const char* call) const {
  constexpr LtResult kNoMemory = 3, kNotSupported = 15;  // CUBLAS_STATUS_ALLOC_FAILED, ...
  if (result == 0) return ok_status();
  const char* name = cublasLtGetStatusName(result);
  const std::string text =
      std::string(call) + ": " + (name ? name : "cuBLAS error " + std::to_string(result));
  if (result == kNotSupported) return unimplemented(text);
  return result == kNoMemory ? resource_exhausted(text) : internal_error(text);
}

Expected<CublasLt> open_cublaslt(const Search& search, int driver_version) {
  TROUPE_TRY(const Library library,
             Library::open(names_for_driver("libcublasLt.so", driver_version), search));
  CublasLt lt;
  lt.path = library.path();
  lt.fake = library.find("troupe_fake_cublaslt") != nullptr;
  if (const char* lacks = fill(static_cast<CublasLtTable&>(lt), library))
    return failed_precondition(library.path() + " lacks " + lacks);
  lt.version = int(lt.cublasLtGetVersion());
  return lt;
}

}  // namespace troupe::cuda
