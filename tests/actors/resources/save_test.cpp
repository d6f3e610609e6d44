// Variables in files: Session::save and restore.
#include <doctest/doctest.h>

#include <filesystem>

#include "ops/api/math.hpp"
#include "serialization/safetensors.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Gone with the test.
struct SavedFile {
  SavedFile() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-save-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    directory = name;
    path = directory + "/variables.safetensors";
  }
  ~SavedFile() { std::filesystem::remove_all(directory); }
  std::string directory, path;
};

struct TwoVariables {
  explicit TwoVariables(const Place& place) {
    first = variable(g, "first", Tensor::of<float>({2}, {1, 2}));
    auto here = g.with_device(place.second);
    second = variable(g, "second", Tensor::scalar(std::int64_t{7}));
    raise = assign_add(second, constant(g, std::int64_t{1}));
  }
  Graph g;
  Variable first, second;
  Op raise;
};

}  // namespace

TEST_CASE("saved variables are restored, in the session that saved them and in another") {
  const SavedFile file;
  for (const Place& place : kPlaces) {
    INFO(place.name);
    TwoVariables v(place);
    const std::size_t nodes = v.g.def().nodes.size();
    {
      PlacedSession s(v.g, place);
      CHECK_FALSE(s->try_save(file.path).ok());  // no variable has a value yet
      s->init();
      s->save(file.path);
      for (int i = 0; i < 3; ++i) {  // at any time, again and again
        s->run({}, {v.raise});
        CHECK(s->run({v.second.value()})[0].item<std::int64_t>() == 8);
        s->restore(file.path);
        CHECK(s->run({v.second.value()})[0].item<std::int64_t>() == 7);
      }
      s->run({}, {v.raise});
      s->save(file.path);  // instead of the first
    }
    CHECK(v.g.def().nodes.size() == nodes);
    TwoVariables other(place);
    PlacedSession s(other.g, place);
    s->restore(file.path);  // instead of init()
    CHECK(s->run({other.second.value()})[0].item<std::int64_t>() == 8);
    CHECK(Tensor::same(s->run({other.first.value()})[0], Tensor::of<float>({2}, {1, 2})));
  }
}

TEST_CASE("a file that does not fit the graph is refused by variable, and changes nothing") {
  const SavedFile file;
  TwoVariables v(kPlaces[0]);
  Session s(v.g, one_thread());
  s.init();
  const Tensor first = Tensor::of<float>({2}, {5, 6}), second = Tensor::scalar(std::int64_t{9});
  const std::pair<std::map<std::string, Tensor>, const char*> wrong[] = {
      {{{"first", first}}, "it has no variable 'second', i64[] in the graph"},
      {{{"first", first}, {"second", Tensor::scalar(9.0f)}},
       "variable 'second' is f32[] there, and i64[] in the graph"},
      {{{"first", Tensor::of<float>({3}, {5, 6, 7})}, {"second", second}},
       "variable 'first' is f32[3] there, and f32[2] in the graph"}};
  for (const auto& [tensors, says] : wrong) {
    REQUIRE(write_safetensors(file.path, {tensors, {}}).ok());
    const Status status = s.try_restore(file.path);
    CHECK(status.message() == says);
    CHECK(status.text().find(file.path) != std::string::npos);
  }
  CHECK(s.try_restore(file.directory + "/absent").code() == Code::not_found);
  CHECK(s.run({v.second.value()})[0].item<std::int64_t>() == 7);
}

TEST_CASE("a variable that safetensors does not hold is not saved, and named") {
  const SavedFile file;
  Graph g;
  (void)variable(g, "text", Tensor::scalar("abc"));
  Session s(g, one_thread());
  s.init();
  CHECK(s.try_save(file.path).message() ==
        "variable 'text' is string[], which safetensors does not hold");
  CHECK_FALSE(std::filesystem::exists(file.path));
}

TEST_CASE("variables that are read behind others, in functions or by updates alone are saved") {
  const SavedFile file;
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    auto on = g.with_device(place.second);
    const auto handle = [&](const char* name) {
      return g
          .add(NodeSpec{.op = "Variable",
                        .attrs = {{"T", DType::f32}, {"shape", PartialShape{}}},
                        .name = name})
          .output();
    };
    const Output p = placeholder<bool>(g, PartialShape{}, "p");
    const Output behind = handle("behind"), inside = handle("inside"), counted = handle("counted"),
                 unused = handle("unused");
    const Output one = constant(g, 1.0f);
    std::vector<Op> assigned;
    for (const Output& each : {behind, inside, counted, unused})
      assigned.push_back(g.add(NodeSpec{.op = "Assign", .inputs = {each, one}}));
    const Op count = g.add(NodeSpec{.op = "AssignAdd", .inputs = {counted, one}});
    const Op raise = g.add(NodeSpec{.op = "AssignAdd", .inputs = {behind, one}});
    const NodeSpec read{.op = "ReadVariable", .attrs = {{"T", DType::f32}}};
    NodeSpec after = read;
    after.inputs = {behind}, after.control = {raise};
    const Output raised = g.add(std::move(after)).output();
    const Output chosen = cond(
        p,
        [&] {
          NodeSpec in_body = read;
          in_body.inputs = {inside};
          return g.add(std::move(in_body)).output();
        },
        [&] { return -one; });
    PlacedSession s(g, place);
    s->run({}, assigned);
    s->run({raised}, {count});
    const auto check_all = [&](Session& of) {
      std::map<std::string, float> values;
      for (const auto& [name, value] : of.variables()) values[name] = value.item<float>();
      CHECK(values == std::map<std::string, float>{{"behind", 2}, {"counted", 2}, {"inside", 1}});
    };
    check_all(*s);
    s->save(file.path);
    const std::string job = s->save_job(file.directory + "/job");
    s->run({raised}, {count});
    s->restore(file.path);
    check_all(*s);
    CHECK(s->run({raised})[0].item<float>() == 3);
    s.destroy();
    PlacedSession later(g, place);
    later->restore_job(file.directory + "/job");
    check_all(*later);
    CHECK(later->run({chosen}, {}, {{p, Tensor::scalar(true)}})[0].item<float>() == 1);
    CHECK(later->run({raised})[0].item<float>() == 3);
    std::filesystem::remove_all(file.directory + "/job");
  }
}

TEST_CASE("a session saves what has the longest name there is, and runs on") {
  const SavedFile file;
  Graph g;
  const std::string longest(1024, 'v');
  const auto named = [&](const char* op, AttrMap attrs, char last) {
    std::string name = longest;
    name.back() = last;
    return g.add(NodeSpec{.op = op, .attrs = std::move(attrs), .name = name}).output();
  };
  const Output one = constant(g, 1.0f);
  const Output v = named("Variable", {{"T", DType::f32}, {"shape", PartialShape{}}}, 'a');
  const AttrMap of_queue{{"types", std::vector<DType>{DType::f32}},
                         {"shapes", std::vector<PartialShape>{PartialShape{}}},
                         {"capacity", std::int64_t{4}}};
  const Output p = named("FIFOQueue", of_queue, 'b'), q = named("FIFOQueue", of_queue, 'c');
  // Nodes of the session's own have names that are made of these.
  const Output r = fifo_queue(g, {DType::f32}, {.shapes = {PartialShape{}}});
  g.add(NodeSpec{.op = "FIFOQueue", .attrs = of_queue, .name = g.node(r.node()).name + "_state"});
  const Op assign = g.add(NodeSpec{.op = "Assign", .inputs = {v, one}});
  const Op add = g.add(NodeSpec{.op = "AssignAdd", .inputs = {v, one}});
  const Op put = enqueue(p, {one}), other = enqueue(q, {one});
  Session s(g, one_thread());
  s.run({}, {assign});
  s.run({}, {add, put, other});
  s.save(file.path);
  s.save_job(file.directory + "/job");
  CHECK(s.run({one})[0].item<float>() == 1);
  Session later(g, one_thread());
  later.restore_job(file.directory + "/job");
  CHECK(later.run({dequeue(p, {DType::f32})[0]})[0].item<float>() == 1);
  CHECK(later.variables().at(0).second.item<float>() == 2);
}
