#include "graph/op_registry.hpp"

#include <doctest/doctest.h>

#include "tests/graph/sample_ops.hpp"

namespace troupe {
namespace {

Status add(OpDef def) {
  OpRegistry r;
  return r.add(std::move(def));
}

const Attr& fallback(const OpInfo& op, std::string_view name) { return *op.attr(name)->fallback; }

TEST_CASE("a definition is taken apart") {
  OpRegistry r;
  OpDef def{.name = "Many",
            .in = {"a", "axis: i64", "index: Tidx", "values: T...", "var: resource",
                   "step: resource of i64"},
            .out = {"y", "parts: types..."},
            .types = "f32 f64",
            .attrs = {"Tidx: type {i32 i64} = i64", "T: type = f64"},
            .host = {"axis"}};
  REQUIRE(r.add(def).ok());
  const OpInfo& op = *r.find("Many");
  CHECK(op.in[0].kind == ArgSpec::Kind::attr);
  CHECK(op.in[0].type_attr == "T");
  CHECK(op.in[1].kind == ArgSpec::Kind::fixed);
  CHECK(op.in[1].dtype == DType::i64);
  CHECK(op.in[1].host);
  CHECK(op.in[2].type_attr == "Tidx");
  CHECK(op.in[3].kind == ArgSpec::Kind::list);
  CHECK(op.in[4].dtype == DType::resource);
  CHECK(op.held_by(op.in[4], {{"T", DType::f32}}) == DType::f32);
  CHECK(op.held_by(op.in[4], {}) == DType::invalid);
  CHECK(op.in[5].dtype == DType::resource);
  CHECK(op.held_by(op.in[5], {{"T", DType::f32}}) == DType::i64);
  CHECK(op.out[1].kind == ArgSpec::Kind::types);
  CHECK(op.attr("N")->kind == "int");
  CHECK(op.attr("types")->kind == "list(type)");
  CHECK(op.attr("T")->types == std::vector<DType>{DType::f32, DType::f64});
  CHECK(fallback(op, "T") == Attr(DType::f64));
  CHECK(op.attr("Tidx")->types.size() == 2);
  CHECK(op.attr("nothing") == nullptr);
}

TEST_CASE("an output is of the parts of a complex type, or of the type that has such parts") {
  OpRegistry r;
  REQUIRE(r.add({.name = "Parts", .in = {"z"}, .out = {"x: real of T"}, .types = "c64 c128"}).ok());
  REQUIRE(
      r.add({.name = "Join", .in = {"x"}, .out = {"z: complex of T"}, .types = "f32 f64"}).ok());
  CHECK(r.find("Parts")->out[0].type({{"T", DType::c128}}) == DType::f64);
  CHECK(r.find("Join")->out[0].type({{"T", DType::f32}}) == DType::c64);
  const auto refused = [](std::string out, std::string types) {
    return add({.name = "R", .in = {"x"}, .out = {std::move(out)}, .types = std::move(types)})
        .message();
  };
  CHECK(refused("z: complex of T", "f32 f16").find("there is none for f16") != std::string::npos);
  CHECK(refused("x: real of T", "c64 f32").find("there is none for f32") != std::string::npos);
  CHECK(refused("x: real of f32", "c64").find("no declared types") != std::string::npos);
  CHECK(refused("x: real of T", "").find("no declared types") != std::string::npos);
  CHECK(refused("x: real of T...", "c64").find("no declared types") != std::string::npos);
}

TEST_CASE("defaults of every kind are read") {
  OpRegistry r;
  REQUIRE(r.add({.name = "D",
                 .attrs = {"i: int = -3", "f: float = 1e-3", "g: float = 2", "b: bool = true",
                           "s: string = hello", "q: string = \"a, b\"",
                           "e: string = ", "t: type = bf16", "h: shape = [?,3]", "u: shape = ?",
                           "z: shape = []", "li: list(int) = [1,1]", "le: list(int) = []",
                           "lf: list(float) = [0.5, 2]", "ls: list(string) = [a, b]",
                           "lt: list(type) = [f32,i64]", "lh: list(shape) = [[1,2], ?]",
                           "m: string {a b} = b"}})
              .ok());
  const OpInfo& op = *r.find("D");
  CHECK(fallback(op, "i") == Attr(-3));
  CHECK(fallback(op, "f") == Attr(1e-3));
  CHECK(fallback(op, "g") == Attr(2.0));
  CHECK(fallback(op, "b") == Attr(true));
  CHECK(fallback(op, "s") == Attr("hello"));
  CHECK(fallback(op, "q") == Attr("a, b"));
  CHECK(fallback(op, "e") == Attr(""));
  CHECK(fallback(op, "t") == Attr(DType::bf16));
  CHECK(fallback(op, "h") == Attr(PartialShape{-1, 3}));
  CHECK(fallback(op, "u") == Attr(PartialShape::unknown()));
  CHECK(fallback(op, "z") == Attr(PartialShape::scalar()));
  CHECK(fallback(op, "li") == Attr(std::vector<std::int64_t>{1, 1}));
  CHECK(fallback(op, "le") == Attr(std::vector<std::int64_t>{}));
  CHECK(fallback(op, "lf") == Attr(std::vector<double>{0.5, 2}));
  CHECK(fallback(op, "ls") == Attr(std::vector<std::string>{"a", "b"}));
  CHECK(fallback(op, "lt") == Attr(std::vector<DType>{DType::f32, DType::i64}));
  CHECK(fallback(op, "lh") ==
        Attr(std::vector<PartialShape>{PartialShape{1, 2}, PartialShape::unknown()}));
  CHECK(op.attr("m")->strings == std::vector<std::string>{"a", "b"});
}

TEST_CASE("definitions that contradict themselves are refused") {
  const std::vector<OpDef> wrong = {
      {.name = ""},
      {.name = "Has Space"},
      {.name = "X", .in = {"a: Tidx"}},  // no attribute declares it
      {.name = "X", .in = {"a: "}},
      {.name = "X", .in = {"a: f32..."}},  // a list needs a type attribute
      {.name = "X", .in = {"a", "a"}},
      {.name = "X", .in = {"a"}, .types = "f32 f33"},
      {.name = "X", .types = "f32", .attrs = {"T: int"}},
      {.name = "X", .types = "f32", .attrs = {"T: type {f32}"}},
      {.name = "X", .types = "f32", .attrs = {"T: type = f64"}},
      {.name = "X", .attrs = {"a: int", "a: bool"}},
      {.name = "X", .attrs = {"a"}},
      {.name = "X", .attrs = {"a: number"}},
      {.name = "X", .attrs = {"a: int = x"}},
      {.name = "X", .attrs = {"a: int = 1.5"}},
      {.name = "X", .attrs = {"a: bool = 1"}},
      {.name = "X", .attrs = {"a: int {1 2}"}},
      {.name = "X", .attrs = {"a: string {a b} = c"}},
      {.name = "X", .attrs = {"a: string {a b"}},
      {.name = "X", .attrs = {"a: string {}"}},
      {.name = "X", .attrs = {"a: list(int) = 1"}},
      {.name = "X", .attrs = {"a: shape = [-2]"}},
      {.name = "X", .attrs = {"a: shape = [1,1,1,1,1,1,1,1,1]"}},
      {.name = "X", .attrs = {"a: tensor = 3"}},
      {.name = "X", .attrs = {"a: type = invalid"}},
      {.name = "X", .in = {"a: k"}, .attrs = {"k: int"}},
      {.name = "X", .in = {"a"}, .host = {"b"}},
      {.name = "X", .in = {"a"}, .reduce = {"b"}},
      {.name = "X", .in = {"a"}, .types = "f32", .reduce = {"a"}},
      {.name = "X", .in = {"a"}, .commutative = true},
      {.name = "X", .in = {"a"}, .grad = sample::pass_grad, .no_gradient = "both"},
  };
  for (const OpDef& def : wrong) {
    CAPTURE(def.attrs.size());
    Status s = add(def);
    CHECK(s.code() == Code::invalid_argument);
    CHECK(s.message().starts_with("op '" + def.name + "'"));
  }
  OpRegistry r;
  CHECK(r.add({.name = "X"}).ok());
  CHECK(r.add({.name = "X"}).code() == Code::already_exists);
}

TEST_CASE("an unknown op is answered with near names") {
  auto op = sample::ops().lookup("MatMil");
  CHECK(op.status().code() == Code::not_found);
  CHECK(op.status().message() == "there is no op 'MatMil'; did you mean MatMul?");
  CHECK(sample::ops().lookup("Completely").status().message() == "there is no op 'Completely'");
}

}  // namespace
}  // namespace troupe
