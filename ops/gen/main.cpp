// troupe-gen DIR [OPS.md]
//   writes generated.hpp and generated.cpp, a typed wrapper for each op, and the table of all ops
// troupe-gen --gpu-functions FILE
//   writes FILE.hpp, which includes all device code, and FILE.inc, a line for each function that
//   kernels of GPUs may ask for
// troupe-gen --check DIR [OPS.md]
//   fails, naming the file, when what is there is not what it would write
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ops/catalogue.hpp"
#include "ops/cuda/device_code.hpp"
#include "ops/cuda/functions.hpp"
#include "ops/gen/wrapper.hpp"
#include "ops/isa.hpp"
#include "ops/op.hpp"

namespace {

constexpr std::string_view kHeader =
    R"(// Typed wrappers of all ops. Written by troupe-gen from the op definitions; do not edit.
// clang-format off
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/builder.hpp"
#include "ops/api/ints.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

)";
constexpr std::string_view kSource =
    R"(// Written by troupe-gen from the op definitions; do not edit.
// clang-format off
#include "ops/api/generated.hpp"

#include "ops/api/node.hpp"

namespace troupe {

)";
constexpr std::string_view kEnd = "}  // namespace troupe\n";

struct File {
  std::string path, content;
};

std::vector<File> wrappers(const troupe::OpRegistry& ops, const std::string& folder) {
  std::vector<File> files = {{folder + "/generated.hpp", std::string(kHeader)},
                             {folder + "/generated.cpp", std::string(kSource)}};
  for (const troupe::OpInfo* op : ops.all()) {
    if (!troupe::gen::has_wrapper(*op)) continue;
    auto wrapper = troupe::gen::write_wrapper(*op);
    files[0].content += wrapper.declaration + "\n";
    files[1].content += wrapper.definition + "\n";
  }
  for (File& file : files) file.content += kEnd;
  return files;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// For tests/fake_cuda/emulated.cpp.
std::vector<File> gpu_functions(const troupe::OpTable& table, const std::string& path) {
  std::string lines;
  for (const troupe::cuda::GpuFunction& function : troupe::cuda::all_functions(table))
    lines += fmt::format("emulated<{}>(\"{}\"),\n", function.type,
                         troupe::cuda::function_name(function.type));
  return {{path + ".hpp", std::string(troupe::cuda::device_code().prologue)},
          {path + ".inc", std::move(lines)}};
}

// What would be the same stays, so that nothing is built again for it.
bool write(const std::string& path, const std::string& content) {
  if (!content.empty() && read(path) == content) return true;
  std::ofstream out(path, std::ios::binary);
  out << content;
  return bool(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::string_view(argv[1]) == "--check";
  const bool gpu = argc == 3 && std::string_view(argv[1]) == "--gpu-functions";
  const int first = check || gpu ? 2 : 1;
  if (argc != first + 1 && argc != first + 2) {
    fmt::print(
        stderr,
        "usage: troupe-gen [--check] DIR [OPS.md]\n       troupe-gen --gpu-functions FILE\n");
    return 2;
  }
  if (troupe::Status s = troupe::ops::ready(); !s.ok()) {
    fmt::print(stderr, "{}\n", s.text());
    return 1;
  }
  const troupe::OpTable& table = troupe::ops::builtin();
  std::vector<File> files =
      gpu ? gpu_functions(table, argv[first]) : wrappers(table.ops, argv[first]);
  if (argc == first + 2)
    files.push_back(
        {argv[first + 1], troupe::ops::catalogue_markdown(troupe::ops::catalogue(table))});
  for (const File& file : files) {
    if (read(file.path) == file.content) continue;
    if (check) {
      fmt::print(stderr, "{} is stale: run ./dev gen\n", file.path);
      return 1;
    }
    if (!write(file.path, file.content)) {
      fmt::print(stderr, "cannot write {}\n", file.path);
      return 1;
    }
  }
  return 0;
}
