// Bags of ids: their rows joined in three ways, against plain loops.
#include <algorithm>

#include "tests/contains.hpp"
#include "tests/misuse.hpp"
#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t kTableSize = 3, kIdsInTable = 5;
// Of the lengths 2, 0, 3 and 1; padded with an id that no table has.
const std::vector<std::vector<std::int64_t>> kBagged{
    {4, 1, -7}, {-7, -7, -7}, {1, 0, 1}, {3, -7, -7}};
const std::vector<std::size_t> kBagLengths{2, 0, 3, 1};

Numbers bag_model(nn::Combiner how, const Numbers& table, const Numbers& weights) {
  Numbers y;
  std::size_t at = 0;
  for (std::size_t bag = 0; bag < kBagged.size(); ++bag) {
    Numbers sum(kTableSize, 0.0);
    double total = 0, squares = 0;
    for (std::size_t i = 0; i < kBagLengths[bag]; ++i, ++at) {
      const double w = weights.empty() ? 1 : weights[at];
      total += w;
      squares += w * w;
      for (std::size_t j = 0; j < kTableSize; ++j)
        sum[j] += w * table[std::size_t(kBagged[bag][i]) * kTableSize + j];
    }
    const double by = how == nn::Combiner::sum    ? 1
                      : how == nn::Combiner::mean ? total
                                                  : std::sqrt(squares);
    for (double x : sum) y.push_back(by == 0 ? 0 : x / by);
  }
  return y;
}

nn::Bags some_bags(Graph& g) {
  std::vector<std::int64_t> ids;
  for (const auto& bag : kBagged) ids.insert(ids.end(), bag.begin(), bag.end());
  return nn::bags(
      constant(g, Tensor::of<std::int64_t>(Shape{4, 3}, ids)),
      constant(g, {std::int32_t{2}, std::int32_t{0}, std::int32_t{3}, std::int32_t{1}}));
}

}  // namespace

TEST_CASE("the rows of a bag are joined as their combiner says, with the gradients of that") {
  for (const nn::Combiner how : {nn::Combiner::sum, nn::Combiner::mean, nn::Combiner::sqrtn})
    for (const bool weighted : {false, true}) {
      CAPTURE(int(how));
      CAPTURE(weighted);
      Graph g;
      const Numbers table = draw(2, kIdsInTable * kTableSize);
      const Numbers weights = weighted ? Numbers{0.5, -2, 1, 3, 0.25, -1} : Numbers();
      const Output rows = constant(g, tensor({kIdsInTable, kTableSize}, table));
      nn::LookupOptions options{.combiner = how};
      Compared compared{g, {}, {rows}, {table}, [&](const std::vector<Numbers>& in) {
                          return bag_model(how, in[0], weighted ? in[1] : Numbers());
                        }};
      if (weighted) {
        options.weights = constant(g, weights);
        compared.inputs.push_back(options.weights);
        compared.values.push_back(weights);
      }
      compared.y = nn::embedding_lookup(rows, some_bags(g), options);
      Interpreter run(g);
      compared.check(run);
    }
}

TEST_CASE("a bag whose weights add up to 0 has no mean, and gives zeros") {
  Graph g;
  const Output table = constant(g, {{1.0f, 2.0f}, {5.0f, 7.0f}});
  const nn::Bags one{constant(g, {std::int64_t{0}, std::int64_t{1}}),
                     constant(g, {std::int64_t{0}, std::int64_t{0}}), constant<std::int64_t>(g, 1)};
  const Output weights = constant(g, {1.0f, -1.0f});
  const auto of = [&](nn::Combiner how) {
    Interpreter run(g);
    const Tensor y =
        run.run({nn::embedding_lookup(table, one, {.combiner = how, .weights = weights})})[0];
    return std::vector<float>(y.span<float>().begin(), y.span<float>().end());
  };
  CHECK(of(nn::Combiner::mean) == std::vector<float>{0, 0});
  CHECK(of(nn::Combiner::sum) == std::vector<float>{-4, -5});
}

TEST_CASE("a large table changes by the rows of its bags") {
  Graph g;
  struct BagRoot : nn::Module {
    using Module::Module;
    nn::Embedding rows{*this, "rows", 40'000, 2};
  } root{g.scope("net")};
  optim::Sgd{.lr = 0.1}.minimize(
      sum(square(root.rows(some_bags(g), {.combiner = nn::Combiner::sqrtn}))));
  const auto& nodes = g.def().nodes;
  CHECK(std::any_of(nodes.begin(), nodes.end(),
                    [](const NodeDef& n) { return n.op == "ApplySparseGradientDescent"; }));
}

TEST_CASE("a length that no row has fails the run") {
  const auto failure = [&](std::int64_t n) {
    Graph g;
    const Output ids = constant(g, {{std::int64_t{1}, std::int64_t{2}}});
    return Interpreter(g).failure_of({nn::bags(ids, constant(g, {n})).ids});
  };
  CHECK(failure(0).empty());
  CHECK(failure(2).empty());
  CHECK(contains(failure(3), "= 3 is outside [0, 3)"));
  CHECK(contains(failure(-1), "= -1 is outside"));
}

TEST_CASE("one length or weight for several fails the run") {
  Graph g;
  const Output lengths = placeholder<std::int64_t>(g, {-1}), weights = placeholder<double>(g, {-1});
  const Output ids = placeholder<std::int64_t>(g, {-1, 2});
  const nn::Bags bags = nn::bags(ids, lengths);
  const Output table = constant(g, {{1.0, 2.0}, {5.0, 7.0}});
  const Output y =
      nn::embedding_lookup(table, bags, {.combiner = nn::Combiner::sum, .weights = weights});
  const auto fed = [&](std::initializer_list<std::int64_t> l, std::initializer_list<double> w) {
    return Interpreter(g).failure_of(
        {y}, {{ids.node(), Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0})},
              {lengths.node(), Tensor::of<std::int64_t>({std::int64_t(l.size())}, l)},
              {weights.node(), Tensor::of<double>({std::int64_t(w.size())}, w)}});
  };
  CHECK(fed({2, 1}, {1, 1, 1}).empty());
  CHECK_FALSE(fed({2}, {1, 1, 1, 1}).empty());
  CHECK_FALSE(fed({2, 1}, {1}).empty());
}

TEST_CASE("rows are looked up by ids of any shape") {
  Graph g;
  const Output table = constant(g, {{1.0, 2.0}, {5.0, 7.0}});
  const Output y = nn::embedding_lookup(table, constant<std::int64_t>(g, {2, 1}, {1, 0}));
  CHECK(y.shape() == PartialShape{2, 1, 2});
  check_near(Interpreter(g).run({y})[0], {5, 7, 1, 2});
}

TEST_CASE("bags refuse what does not fit, with the line") {
  Graph g;
  const Output ids = constant(g, {{std::int64_t{1}, std::int64_t{2}}});
  const Output two = constant(g, {std::int64_t{1}, std::int64_t{2}});
  check_refused({
      {"ids are [bags, most] with lengths [bags]", [&] { nn::bags(ids, two); }},
      {"ids are [bags, most]", [&] { nn::bags(two, two); }},
      {"the weights of ids [?] are [2,2]",
       [&] {
         nn::embedding_lookup(cast<float>(ids), nn::bags(ids, two[range(0, 1)]),
                              {.weights = zeros<float>(g, {2, 2})});
       }},
      {"the ids of the bags", [&] { nn::embedding_lookup(cast<float>(ids), nn::Bags{}); }},
      {"the ids of bags are [n]",
       [&] {
         nn::embedding_lookup(cast<float>(ids), nn::Bags{ids, two, two[0]});
       }},
  });
}
