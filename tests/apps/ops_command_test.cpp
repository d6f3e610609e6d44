#include <doctest/doctest.h>

#include <algorithm>

#include "tests/apps/command.hpp"

namespace {

std::size_t lines(const std::string& text) {
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("the public ops of this build are listed, and all of them when asked for") {
  Ended some = troupe_command("ops");
  CHECK(some.code == 0);
  CHECK(contains(some.out, "\nMatMul(a, b) -> (product)"));
  CHECK(contains(some.out, "gradient: yes/yes"));
  CHECK(contains(some.out, "TensorFlow: ConcatV2"));
  CHECK_FALSE(contains(some.out, "\nReluGrad("));
  CHECK_FALSE(contains(some.out, "\n_"));
  Ended all = troupe_command("ops --all");
  CHECK(contains(all.out, "\nReluGrad("));
  CHECK(contains(all.out, "\n_"));
  CHECK(lines(all.out) > lines(some.out));
}

TEST_CASE("one op is described in full, also by the name that it has elsewhere") {
  Ended ended = troupe_command("ops OneHot");
  CHECK(ended.code == 0);
  for (const char* part : {"OneHot\n", "Adds a last dimension", "inputs:\n", "outputs:\n",
                           "gradient:", "kernels:    CPU, CUDA, FAKE", "defined in: ops/kernels/array/"})
    CHECK_MESSAGE(contains(ended.out, part), ended.out);
  CHECK(contains(troupe_command("ops Convolution2D").out, "Conv2D\n"));
  CHECK(contains(troupe_command("ops ArgMax").out, "none: an index"));
  Ended unknown = troupe_command("ops MatMull");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "there is no op 'MatMull'; did you mean MatMul?"));
}

TEST_CASE("ops are filtered by the type of device that runs them") {
  Ended fake = troupe_command("ops --device fake");
  CHECK(fake.code == 0);
  CHECK(contains(fake.out, "\nMatMul("));
  CHECK_FALSE(contains(fake.out, "\nUnique("));  // its shape depends on values
  CHECK(contains(fake.out, "\nReadVariable("));  // the runtime's
  CHECK(contains(troupe_command("ops --device cpu").out, "\nUnique("));
  Ended unknown = troupe_command("ops --device tpu");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "CPU CUDA FAKE"));
}

TEST_CASE("the table of ops is a JSON document") {
  auto table = troupe_command("ops --output json").json();
  REQUIRE(table.is_array());
  auto one = troupe_command("ops Conv2D --output json").json();
  REQUIRE(one.is_object());
  CHECK(std::find(table.begin(), table.end(), one) != table.end());
  CHECK(one["paper"] == "Convolution2D");
  CHECK(one["inputs"][0]["name"] == "x");
  CHECK(one["gradient"] == "yes");
  CHECK(one["attributes"][0]["name"] == "T");
  CHECK(one["attributes"][2]["default"] == "SAME");
  CHECK(troupe_command("ops MatMull --output json").json()["code"] == "not_found");
}

TEST_CASE("no public op lacks what its definition should have") {
  Ended ended = troupe_command("ops --check");
  CHECK_MESSAGE(ended.code == 0, ended.out);
  CHECK(ended.out.empty());
  CHECK(troupe_command("ops --check --output json").json() == nlohmann::json::array());
  CHECK(troupe_command("ops --check MatMul").code == 2);
  CHECK(troupe_command("ops --all MatMul").code == 2);
}
