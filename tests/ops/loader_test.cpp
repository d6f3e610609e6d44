// The table of ops and how it is filled.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "ops/isa.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/paths.hpp"

namespace troupe {
namespace {

Expected<std::unique_ptr<Kernel>> no_kernel(const KernelSpec&) {
  return unimplemented("for a test");
}

}  // namespace

TEST_CASE("the loaded ISA level stays, and says so") {
  const int level = ops::isa_level();
  ops::builtin();
  ops::settle();
  CHECK(ops::ready().ok());
  CHECK(ops::isa_level() == level);
  CHECK(level >= 2);
  CHECK(level <= ops::kTileLevel);
  CHECK(ops::limit_isa(level).ok());
  CHECK(ops::limit_isa(level == 2 ? 3 : 2).code() == Code::failed_precondition);
  CHECK(ops::limit_isa(ops::kTileLevel + 1).code() == Code::invalid_argument);
  CHECK(ops::set_cache_sizes(ops::cache_sizes()).ok());
  CHECK(ops::set_cache_sizes({.l1 = 1024}).code() == Code::failed_precondition);
  CHECK(ops::set_cache_sizes({.l1 = 0}).code() == Code::invalid_argument);
}

TEST_CASE("TROUPE_ISA names the level, and is refused where it cannot be had") {
  const int level = ops::isa_level();
  if (const char* wanted = std::getenv("TROUPE_ISA"); wanted != nullptr && *wanted != '\0')
    CHECK(std::string(wanted) == ops::isa_name(level));
  // A process of its own: the level of this one is chosen.
  auto text_of = [](const std::string& isa) {
    std::string command = "TROUPE_ISA=" + isa + " " + build_dir() + "/bin/troupe-gen --check " +
                          source_dir() + "/ops/api 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char buffer[256];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
    const int code = pclose(pipe);
    CHECK((code == 0) == text.empty());
    return text;
  };
  CHECK(text_of(ops::isa_name(level)) == "");
  for (std::string isa : {"v2", "v3", "v4", "v4-amx"}) {  // runs, or says what is missing
    const std::string text = text_of(isa);
    CHECK_MESSAGE((text.empty() || text.find("TROUPE_ISA") != std::string::npos), text);
  }
  for (std::string isa : {"v5", "4", "avx2", "amx"})
    CHECK(text_of(isa).find("TROUPE_ISA is v2, v3, v4 or v4-amx, not '" + isa + "'") !=
          std::string::npos);
}

TEST_CASE("a processor of x86-64-v4 can compute as one with AMX does") {
  CHECK(ops::isa_name(ops::kTileLevel) == "v4-amx");
  CHECK(ops::isa_name(3) == "v3");
  CHECK(ops::can_compute_at(ops::isa_level()));
  for (int none : {-1, 0, 1, ops::kTileLevel + 1}) CHECK_FALSE(ops::can_compute_at(none));
  if (const char* wanted = std::getenv("TROUPE_ISA"); wanted != nullptr && *wanted != '\0') {
    for (int level = 2; level <= ops::kTileLevel; ++level)
      CHECK(ops::can_compute_at(level) == (ops::isa_name(level) == wanted));
    return;
  }
  const int level = ops::isa_level();
  CHECK(ops::can_compute_at(ops::kTileLevel) == (level >= 4));
  if (level >= 4) CHECK((level == ops::kTileLevel) == ops::has_tiles());
}

TEST_CASE("the level of bf16 products stays once a kernel has asked for it") {
  const int level = ops::isa_level();
  ops::builtin();
  CHECK(ops::adds_by_tiles() == (level == ops::kTileLevel));
  if (level >= 4)
    CHECK(ops::limit_isa(level == 4 ? ops::kTileLevel : 4).code() == Code::failed_precondition);
  CHECK(ops::isa_level() == level);
}

TEST_CASE("a kernel is found by op and device, and refused by dtype") {
  OpTable table;
  table.add({.name = "F", .in = {"x"}, .out = {"y"}, .types = "f32 f64", .shape = same_shape})
      .cpu(no_kernel, "f32");
  NodeDef node{.name = "n", .op = "F", .attrs = {{"T", DType::f64}}};
  const OpInfo& op = *table.ops.find("F");
  CHECK(table.kernels.make(node, op, "CPU").status().text().find("f64") != std::string::npos);
  CHECK(table.kernels.make(node, op, "CUDA").status().text().find("CPU, FAKE") !=
        std::string::npos);
  node.attrs["T"] = DType::f32;
  CHECK(table.kernels.make(node, op, "CPU").status().code() == Code::unimplemented);
  CHECK(table.kernels.add("F", "CPU", {no_kernel, {}}).code() == Code::already_exists);
  KernelIndex index = table.kernels.index();
  CHECK(index.has("F", "CPU", DType::f32));
  CHECK(!index.has("F", "CPU", DType::f64));
}

TEST_CASE("an op whose shapes depend on values has no kernel on the fake device") {
  OpTable table;
  table.add({.name = "F", .in = {"x"}, .out = {"y"}, .types = "f32", .shape = unknown_shape})
      .cpu(no_kernel);
  CHECK(table.kernels.find("F", "CPU") != nullptr);
  CHECK(table.kernels.find("F", "FAKE") == nullptr);
}

TEST_CASE("an elementwise kernel writes over an input that nobody else needs") {
  Tensor x = Tensor::of<float>(Shape{3}, {1, 2, 3});
  const void* memory = x.raw();
  NodeDef node = test::make_node("Neg", {x}, {});
  std::vector<Tensor> inputs;
  inputs.push_back(std::move(x));
  auto y =
      evaluate(ops::builtin(), node, std::move(inputs), test::inline_device(), {.in_place = true});
  REQUIRE(y.ok());
  CHECK((*y)[0].raw() == memory);
  CHECK((*y)[0].data<float>()[2] == -3);
}

TEST_CASE("an error of a kernel names the node") {
  Tensor a = Tensor::scalar<std::int32_t>(1), zero = Tensor::scalar<std::int32_t>(0);
  auto out = test::try_run("Div", {a, zero});
  CHECK(out.status().text().find("in node 'n' (Div)") != std::string::npos);
}

}  // namespace troupe
