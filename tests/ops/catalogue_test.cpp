// What is said of each op, and that nothing is missing. The definitions are checked as `troupe ops
// --check` checks them; what an op has in the tables of tests, which only this program knows, is
// checked beside that.
#include "ops/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/contains.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/paths.hpp"

namespace troupe::test {
namespace {

using ops::CatalogueEntry;
using ops::CatalogueFinding;
using ops::Flow;

const std::vector<CatalogueEntry>& all_ops() {
  static const auto entries = ops::catalogue(ops::builtin());
  return entries;
}

const CatalogueEntry& entry(std::string_view name) {
  auto found = ops::find_op(all_ops(), name);
  REQUIRE_MESSAGE(found.ok(), found.status().text());
  return **found;
}

struct Rows {
  bool good = false, hostile = false, differentiated = false;
};
std::map<std::string, Rows> rows_by_op() {
  std::map<std::string, Rows> by_op;
  for (auto make : AddCases::all())
    for (const OpCase& row : make()) {
      Rows& rows = by_op[row.op];
      (row.error.empty() ? rows.good : rows.hostile) = true;
      rows.differentiated |= !row.differentiate.empty();
    }
  return by_op;
}

// Rows are of nodes that a kernel computes from tensors. Of the others there are programs:
// lists (lists_test.cpp), resources, calls and functions (tests of actors/ and graph/control/).
bool has_rows(const CatalogueEntry& entry) {
  const OpInfo& op = *entry.op;
  const auto is_list = [](const ArgSpec& arg) { return arg.dtype == DType::list; };
  return !entry.internal && op.def.role == Role::kernel && op.def.composite == nullptr &&
         std::none_of(op.in.begin(), op.in.end(), is_list) &&
         std::none_of(op.out.begin(), op.out.end(), is_list);
}

std::vector<CatalogueFinding> check_rows() {
  std::vector<CatalogueFinding> findings;
  const auto rows = rows_by_op();
  for (const CatalogueEntry& e : all_ops()) {
    if (!has_rows(e)) continue;
    const std::string& name = e.op->def.name;
    const auto at = rows.find(name);
    const Rows found = at == rows.end() ? Rows() : at->second;
    if (!found.good) findings.push_back({name, "a row of the conformance test"});
    if (!found.hostile) findings.push_back({name, "a hostile row"});
    if (e.gradient == Flow::yes && !found.differentiated)
      findings.push_back({name, "a row that differentiates it"});
  }
  return findings;
}

// What tests say instead of the name of an op that a program gets by another word.
const std::map<std::string, std::string> kUsedThrough = {
    {"ApplyAdadelta", "Adadelta{"},
    {"ApplyAdagrad", "Adagrad{"},
    {"ApplyAdamW", "AdamW{"},
    {"ApplyCenteredRMSProp", ".centered = true"},
    {"ApplyFtrl", "Ftrl{"},
    {"ApplyLamb", "Lamb{"},
    {"ApplyMovingAverage", "move_average("},
    {"ApplyProximalAdagrad", "ProximalAdagrad{"},
    {"ApplyProximalGradientDescent", "ProximalSgd{"},
    {"ApplyRMSProp", "RmsProp{"},
    {"LoadResource", "restore_job("},
    {"RestoreShard", "\"restore\","},
    {"SaveResource", "save_job("},
    {"SaveShard", "\"save\","},
    {"SavedTrips", "gradients of what a loop repeats, twice"},
    {"SwitchN", "switch_case("}};

// All that the other tests say.
std::string texts_of_tests() {
  std::string all;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_dir() + "/tests")) {
    const std::string name = file.path().filename();
    if ((!name.ends_with(".cpp") && !name.ends_with(".hpp")) || name == "catalogue_test.cpp")
      continue;
    std::ifstream in(file.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

// "ListStack" -> "list_stack(", which its wrapper is called by.
std::string call_of(std::string_view name) {
  std::string out;
  for (char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out += '_';
    out += upper ? char(c - 'A' + 'a') : c;
  }
  return out + "(";
}

std::vector<CatalogueFinding> check_programs() {
  std::vector<CatalogueFinding> findings;
  const std::string said = texts_of_tests();
  for (const CatalogueEntry& e : all_ops()) {
    if (e.internal || has_rows(e)) continue;
    const std::string& name = e.op->def.name;
    const auto other = kUsedThrough.find(name);
    if (other != kUsedThrough.end()
            ? !contains(said, other->second)
            : !contains(said, "\"" + name + "\"") && !contains(said, call_of(name)))
      findings.push_back({name, "a test with a program that has it"});
  }
  return findings;
}

}  // namespace

TEST_CASE("no public op lacks documentation, shapes, kernels, gradients or tests") {
  std::vector<CatalogueFinding> findings = ops::check_catalogue(all_ops());
  for (CatalogueFinding& finding : check_rows()) findings.push_back(std::move(finding));
  for (CatalogueFinding& finding : check_programs()) findings.push_back(std::move(finding));
  for (const CatalogueFinding& f : findings) FAIL_CHECK(f.op << " lacks " << f.missing);
}

TEST_CASE("an op is found by its name, by that of TensorFlow and by that of the paper") {
  CHECK(entry("Conv2D").op->def.name == "Conv2D");
  CHECK(entry("Convolution2D").op->def.name == "Conv2D");
  CHECK(entry("ConcatV2").op->def.name == "Concat");
  CHECK(entry("SplitV").op->def.name == "Split");
  CHECK(entry("Exit").op->def.name == "Exit");
  auto missing = ops::find_op(all_ops(), "MatMull");
  CHECK(missing.status().code() == Code::not_found);
  CHECK(contains(missing.status().message(), "did you mean MatMul"));
  CHECK(!ops::find_op(all_ops(), "").ok());
}

TEST_CASE("gradients that the table promises are those that a program gets") {
  CHECK(entry("MatMul").gradient == Flow::yes);
  CHECK(entry("MatMul").second == Flow::yes);
  CHECK(entry("ReadVariable").gradient == Flow::yes);
  CHECK(entry("While").second == Flow::yes);
  CHECK(entry("ListStack").second == Flow::yes);
  CHECK(entry("ArgMax").gradient == Flow::none);
  CHECK(entry("ArgMax").reason == "an index");
  // Has a gradient function, which refuses.
  CHECK(entry("Enter").gradient == Flow::none);
  CHECK(contains(entry("Enter").reason, "while_loop"));
}

TEST_CASE("internal ops are those of gradients, rules and branches") {
  CHECK(ops::is_internal_op("_Send"));
  CHECK(ops::is_internal_op("ReluGrad"));
  CHECK(ops::is_internal_op("AssignAddWhen"));
  CHECK(!ops::is_internal_op("Where"));
  CHECK(!ops::is_internal_op("Relu"));
  CHECK(entry("ReluGrad").internal);
}

TEST_CASE("an op's file and its kernels are told") {
  CHECK(entry("MatMul").file == "ops/kernels/math/matmul.cpp");
  CHECK(entry("MatMul").group == "math");
  CHECK(entry("MatMul").devices == std::vector<std::string>{"CPU", "CUDA", "FAKE"});
  // What runs on the host beside a GPU is not the GPU's.
  CHECK(entry("ApplyLambWhen").devices == std::vector<std::string>{"CPU", "FAKE"});
  CHECK(entry("If").devices.empty());
  CHECK(entry("ArgMax").dtypes().starts_with("f32"));
  for (const CatalogueEntry& e : all_ops()) CHECK_MESSAGE(!e.file.empty(), e.op->def.name);
}

TEST_CASE("a gradient that leads to an op without one is of first order only") {
  OpTable table;
  table.add(
      {.name = "Placeholder",
       .out = {"y"},
       .types = "f32",
       .attrs = {"shape: shape = ?"},
       .shape = [](InferenceContext& c) { return c.set(0, c.shape_attr("shape")), ok_status(); },
       .no_gradient = "no inputs",
       .role = Role::placeholder});
  table.add({.name = "Stops",
             .in = {"x"},
             .out = {"y"},
             .types = "f32",
             .shape = same_shape,
             .no_gradient = "for this test"});
  table.add(
      {.name = "Once",
       .in = {"x"},
       .out = {"y"},
       .types = "f32",
       .shape = same_shape,
       .grad = [](GradContext& c) { return std::vector<Output>{c.g.add("Stops", {c.dy[0]})}; }});
  table.add(
      {.name = "Twice",
       .in = {"x"},
       .out = {"y"},
       .types = "f32",
       .shape = same_shape,
       .grad = [](GradContext& c) { return std::vector<Output>{c.g.add("Twice", {c.dy[0]})}; }});
  const auto entries = ops::catalogue(table);
  const auto flows = [&](std::string_view name) {
    const CatalogueEntry& e = **ops::find_op(entries, name);
    return std::pair(e.gradient, e.second);
  };
  CHECK((flows("Once") == std::pair(Flow::yes, Flow::no)));
  CHECK((flows("Twice") == std::pair(Flow::yes, Flow::yes)));
  CHECK((flows("Stops") == std::pair(Flow::none, Flow::none)));
  std::string said;
  for (const CatalogueFinding& f : ops::check_catalogue(entries))
    said += f.op + " lacks " + f.missing + "\n";
  CHECK_MESSAGE(contains(said, "Once lacks a gradient of second order\n"), said);
  CHECK_MESSAGE(!contains(said, "Twice lacks a gradient"), said);
}

TEST_CASE("an op that lacks everything is found out") {
  OpTable table;
  table.add({.name = "Bare", .in = {"x"}, .out = {"y"}, .types = "f32"});
  const auto entries = ops::catalogue(table);
  std::string said;
  for (const CatalogueFinding& f : ops::check_catalogue(entries))
    if (f.op == "Bare") said += f.missing + "\n";
  for (const char* missing : {"documentation", "a shape function", "a CPU kernel", "a gradient"})
    CHECK_MESSAGE(contains(said, missing), said);
}

}  // namespace troupe::test
