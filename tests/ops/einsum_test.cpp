// einsum beside the sums that it stands for.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using troupe::test::Interpreter;

namespace {

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor t = Tensor::make(DType::f64, shape).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<double>()[i] = random.uniform() - 0.5;
  return t;
}

// The sum over all letters, the obvious way. `inputs` and `out` are letters alone.
std::vector<double> plain(const std::vector<std::string>& inputs, const std::string& out,
                          const std::vector<Tensor>& values) {
  std::map<char, std::int64_t> length;
  std::string letters = out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t d = 0; d < inputs[i].size(); ++d) {
      length[inputs[i][d]] = values[i].shape()[int(d)];
      if (letters.find(inputs[i][d]) == std::string::npos) letters += inputs[i][d];
    }
  const auto offset = [&](const std::string& of, const std::map<char, std::int64_t>& at) {
    std::int64_t place = 0;
    for (const char c : of) place = place * length.at(c) + at.at(c);
    return std::size_t(place);
  };
  std::int64_t count = 1;
  for (const char c : out) count *= length.at(c);
  std::vector<double> result(std::size_t(count), 0.0);
  std::map<char, std::int64_t> at;
  const std::function<void(std::size_t)> over = [&](std::size_t letter) {
    if (letter == letters.size()) {
      double product = 1;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        product *= values[i].data<double>()[offset(inputs[i], at)];
      result[offset(out, at)] += product;
      return;
    }
    for (std::int64_t k = 0; k < length.at(letters[letter]); ++k) {
      at[letters[letter]] = k;
      over(letter + 1);
    }
  };
  over(0);
  return result;
}

void near(const Tensor& got, const std::vector<double>& want) {
  REQUIRE(got.elements() == std::int64_t(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got.data<double>()[i] == doctest::Approx(want[i]).scale(1).epsilon(1e-13));
}

}  // namespace

TEST_CASE("einsum of equations that people write") {
  struct Row {
    const char* equation;
    std::vector<std::string> inputs;
    std::string out;
    std::vector<Shape> shapes;
  };
  const Row rows[] = {
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
      {"ij,jk", {"ij", "jk"}, "ik", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {"bij", "bjk"}, "bik", {{5, 2, 3}, {5, 3, 4}}},
      {"ij->ji", {"ij"}, "ji", {{2, 3}}},
      {"ba", {"ba"}, "ab", {{2, 3}}},
      {"ij->", {"ij"}, "", {{2, 3}}},
      {"ij->j", {"ij"}, "j", {{2, 3}}},
      {"i,i->", {"i", "i"}, "", {{4}, {4}}},
      {"i,j->ij", {"i", "j"}, "ij", {{4}, {3}}},
      {"ij,ij->ij", {"ij", "ij"}, "ij", {{2, 3}, {2, 3}}},
      {"bqhd,bkhd->bhqk", {"bqhd", "bkhd"}, "bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}}},
      {"bhqk,bkhd->bqhd", {"bhqk", "bkhd"}, "bqhd", {{2, 4, 3, 6}, {2, 6, 4, 5}}},
      {" ab , bc, cd -> ad ", {"ab", "bc", "cd"}, "ad", {{2, 3}, {3, 4}, {4, 5}}},
      {"abc,cd,a->db", {"abc", "cd", "a"}, "db", {{2, 3, 4}, {4, 5}, {2}}},
      {"ij,kl->ijkl", {"ij", "kl"}, "ijkl", {{2, 1}, {1, 3}}},
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{2, 0}, {0, 4}}},
      {"ij,jk->ik", {"ij", "jk"}, "ik", {{0, 3}, {3, 4}}},
      {",i->i", {"", "i"}, "i", {{}, {3}}},
      {"...ij,...jk->...ik", {"abij", "abjk"}, "abik", {{2, 3, 2, 3}, {2, 3, 3, 4}}},
      {"...i->...", {"abi"}, "ab", {{2, 3, 4}}},
      {"i...,j...->ij...", {"iab", "jab"}, "ijab", {{2, 3, 2}, {4, 3, 2}}},
      {"ABc,cB->A", {"ABc", "cB"}, "A", {{2, 3, 4}, {4, 3}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.equation);
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < row.shapes.size(); ++i)
      values.push_back(drawn(row.shapes[i], i + 1));
    const std::vector<double> want = plain(row.inputs, row.out, values);
    Graph g;
    std::vector<Output> known, fed;
    std::map<NodeId, Tensor> feeds;
    for (const Tensor& value : values) {
      known.push_back(constant(g, value));
      fed.push_back(placeholder<double>(g, PartialShape::unknown_of_rank(value.rank())));
      feeds[fed.back().node()] = value;
    }
    Interpreter run(g);
    const Output made = einsum(row.equation, known);
    near(run.run({made})[0], want);
    // Lengths that only the run knows.
    const auto computed = run.run({einsum(row.equation, fed)}, {}, feeds)[0];
    near(computed, want);
    CHECK(made.shape() == PartialShape(computed.shape()));
  }
}

TEST_CASE("gradients of einsum are those of the products that it stands for") {
  Graph g;
  const Output a = constant(g, drawn({2, 3}, 1)), b = constant(g, drawn({3, 4}, 2));
  const auto by_sum = gradients(sum(square(einsum("ij,jk->ki", {a, b}))), {a, b});
  const auto by_product = gradients(sum(square(mat_mul(a, b))), {a, b});
  Interpreter run(g);
  const auto values = run.run({by_sum[0], by_product[0], by_sum[1], by_product[1]});
  for (int i : {0, 2})
    near(values[std::size_t(i)], {values[std::size_t(i) + 1].span<double>().begin(),
                                  values[std::size_t(i) + 1].span<double>().end()});
}

TEST_CASE("einsum refuses what does not fit, with the equation and the client's line") {
  Graph g;
  const Output a = constant(g, drawn({2, 3}, 1)), b = constant(g, drawn({4, 5}, 2)), none;
  const Output any = placeholder(g, DType::f64, PartialShape::unknown());
  check_refused({
      {"einsum of no operands", [&] { einsum("->", {}); }},
      {"names 2 operands and was given 1", [&] { einsum("ij,jk->ik", {a}); }},
      {"'j' is 3 long in one operand and 4 in another",
       [&] {
         einsum("ij,jk->ik", {a, b});
       }},
      {"operand 0 has 2 dimensions, not 3", [&] { einsum("ijk->i", {a}); }},
      {"'i' stands twice in operand 0", [&] { einsum("ii->i", {b}); }},
      {"'z' of the result stands in no operand", [&] { einsum("ij->z", {a}); }},
      {"'i' stands twice in the result", [&] { einsum("ij->ii", {a}); }},
      {"'+' is no letter", [&] { einsum("i+->i", {a}); }},
      {"'.' is no letter", [&] { einsum("i..->i", {a}); }},
      {"'-' is no letter", [&] { einsum("ij->i->j", {a}); }},
      {"the rank of", [&] { einsum("ij->i", {any}); }},
      {"an operand is empty", [&] { einsum("ij->i", {none}); }},
      {"operand 0 has 2 dimensions", [&] { einsum("...ijk->i", {a}); }},
  });
}

TEST_CASE("einsum of operands that only a run knows fails where they do not fit") {
  struct Row {
    const char* equation;
    Shape a, b;  // neither does the product refuse, nor a reshape
  };
  const Row rows[] = {
      {"ij,ij->", {2, 3}, {3, 2}},
      {"bij,bji->b", {4, 2, 3}, {4, 2, 3}},
      {"ij,ij->i", {2, 3}, {1, 3}},
      {"bij,bjk->bik", {5, 2, 3}, {1, 3, 4}},
      {"...ij,...jk->...ik", {5, 2, 3}, {1, 3, 4}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.equation);
    Graph g;
    const auto open = [&](const Shape& shape) {
      return placeholder<double>(g, PartialShape::unknown_of_rank(shape.rank()));
    };
    const Output a = open(row.a), b = open(row.b), whole = constant(g, drawn(row.b, 2));
    const std::map<NodeId, Tensor> feeds = {{a.node(), drawn(row.a, 1)},
                                            {b.node(), drawn(row.b, 2)}};
    const Output both = einsum(row.equation, {a, b}), one = einsum(row.equation, {a, whole});
    Interpreter run(g);
    CHECK(run.failure_of({both}, feeds).find("as long") != std::string::npos);
    CHECK(run.failure_of({one}, feeds).find("should be") != std::string::npos);
    // The gradients need not compute the sum itself.
    for (const Output& dx : gradients(sum(both), {a, b})) CHECK(run.failure_of({dx}, feeds) != "");
  }
  Graph g;
  const Output a = placeholder<double>(g, PartialShape::unknown_of_rank(2));
  const Output b = placeholder<double>(g, PartialShape::unknown_of_rank(2));
  CHECK(Interpreter(g).failure_of({tensordot(a, b, 2)}, {{a.node(), drawn({2, 3}, 1)},
                                                         {b.node(), drawn({3, 2}, 2)}}) != "");
}
