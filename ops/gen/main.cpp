// troupe-gen DIR           writes generated.hpp and generated.cpp, a typed wrapper for each op
// troupe-gen --check DIR   fails, naming the file, when what is there is not what it would write
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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
  std::string name, content;
};

std::vector<File> generate(const troupe::OpRegistry& ops) {
  std::vector<File> files = {{"generated.hpp", std::string(kHeader)},
                             {"generated.cpp", std::string(kSource)}};
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

bool write(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  return bool(out.flush());
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if (argc != (check ? 3 : 2)) {
    fmt::print(stderr, "usage: troupe-gen [--check] DIR\n");
    return 2;
  }
  if (troupe::Status s = troupe::ops::ready(); !s.ok()) {
    fmt::print(stderr, "{}\n", s.text());
    return 1;
  }
  const std::string folder = argv[argc - 1];
  for (const File& file : generate(troupe::ops::builtin().ops)) {
    const std::string path = folder + "/" + file.name;
    if (read(path) == file.content) continue;
    if (check) {
      fmt::print(stderr, "{} is stale: run ./dev gen\n", path);
      return 1;
    }
    if (!write(path, file.content)) {
      fmt::print(stderr, "cannot write {}\n", path);
      return 1;
    }
  }
  return 0;
}
