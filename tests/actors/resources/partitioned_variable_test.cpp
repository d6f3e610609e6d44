// Variables in parts: what is looked up and trained in them is what one variable gives.
#include <doctest/doctest.h>

#include <map>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/contains.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kRows = 11, kColumns = 3, kClasses = 7;

Tensor numbered(const Shape& shape) {
  Tensor t = *Tensor::make(DType::f32, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<float>()[i] = float((i * 37) % 19) / 8 - 1;
  return t;
}

// A loss of looked up rows, bags and candidates, over a table and the weights of classes in so many
// parts each.
struct Model {
  Graph g;
  nn::PartitionedVariable table, weights, biases;
  Output ids, lengths, labels, rows, bags, loss;
  Op train;

  template <class Rule>
  Model(const Rule& rule, const nn::PartitionOptions& parts) {
    const auto made = [&](const char* name, const Shape& shape) {
      return nn::partitioned_variable(g, name, constant(g, numbered(shape)), parts);
    };
    table = made("table", {kRows, kColumns});
    weights = made("weights", {kClasses, kColumns}), biases = made("biases", {kClasses});
    ids = placeholder<std::int64_t>(g, PartialShape{4, 3});
    lengths = placeholder<std::int64_t>(g, PartialShape{4});
    labels = placeholder<std::int64_t>(g, PartialShape{4});
    rows = nn::embedding_lookup(table, ids);
    bags = nn::embedding_lookup(table, nn::bags(ids, lengths), {.combiner = nn::Combiner::sqrtn});
    const nn::Candidates drawn{constant(g, {std::int64_t{2}, std::int64_t{5}, std::int64_t{2}}),
                               constant(g, {0.5f, 0.25f, 0.5f, 1.0f}),
                               constant(g, {0.5f, 1.0f, 0.5f})};
    loss = mean(square(rows)) + mean(nn::sampled_softmax(weights, biases, labels, bags, drawn)) +
           mean(nn::nce(weights, biases, labels, bags, drawn));
    train = rule.minimize(loss);
  }

  // What became of everything in three steps.
  std::vector<std::vector<float>> trained(const Cluster& cluster) {
    Session session(g, cluster);
    session.init();
    const std::vector<Output> fetches{rows, bags, loss};
    const CompiledStep step = session.compile(fetches, {train}, {ids, lengths, labels});
    std::vector<std::vector<float>> all;
    const auto keep = [&](const Tensor& t) {
      all.emplace_back(t.span<float>().begin(), t.span<float>().end());
    };
    for (std::int64_t i = 0; i < 3; ++i) {
      std::vector<std::int64_t> asked(12);
      for (std::size_t k = 0; k < asked.size(); ++k)
        asked[k] = (std::int64_t(k) * 5 + i * 3) % (k % 3 == 2 ? 2 : kRows);
      const std::vector<Tensor> out = step.run({Tensor::of<std::int64_t>({4, 3}, asked),
                                                Tensor::of<std::int64_t>({4}, {2, 0, 3, 1}),
                                                Tensor::of<std::int64_t>({4}, {i, 6, 3, 2})});
      for (const Tensor& t : out) keep(t);
    }
    for (const nn::PartitionedVariable& v : {table, weights, biases})
      keep(session.run({v.value()})[0]);
    return all;
  }
};

}  // namespace

TEST_CASE("what is trained in variables in parts has the bits of one variable") {
  const auto check = [](const auto& rule) {
    const auto whole = Model(rule, {}).trained(one_thread());
    CHECK(whole[2] != whole[5]);
    for (const nn::Partition how : {nn::Partition::mod, nn::Partition::div})
      for (const std::int64_t shards : {2, 3, 7}) {
        CAPTURE(int(how));
        CAPTURE(shards);
        CHECK(Model(rule, {shards, how}).trained(one_thread()) == whole);
      }
    TcpWorkers workers(2);
    CHECK(Model(rule, {3}).trained(workers.cluster()) == whole);
  };
  check(optim::Sgd{.lr = 0.5});
  check(optim::Adam{.lr = 0.1});
}

TEST_CASE("an embedding in parts is a module of so many variables, and asks each for its rows") {
  Graph g;
  struct Net : nn::Module {
    using Module::Module;
    nn::Embedding words{*this, "words", 10, 2, {.shards = 4, .how = nn::Partition::div}};
  } net{g.scope("net")};
  REQUIRE(net.parameters().size() == 4);
  CHECK(net.parameters()[0].name() == "net/words/W/block_0");
  CHECK(net.parameters()[0].shape() == PartialShape{3, 2});
  CHECK(net.parameters()[3].shape() == PartialShape{2, 2});
  const Output ids = placeholder<std::int32_t>(g, PartialShape{2, -1});
  const Output found = net.words(ids);
  CHECK(found.shape() == PartialShape{2, -1, 2});
  Session session(g, one_thread());
  session.init();
  const Tensor all = session.run({net.words.table()})[0];
  const auto look_up = [&](const Tensor& at) { return session.run({found}, {}, {{ids, at}})[0]; };
  const Tensor some = look_up(Tensor::of<std::int32_t>({2, 2}, {9, 0, 3, 3}));
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      CHECK(some.data<float>()[i * 2 + j] ==
            all.data<float>()[(std::vector{9, 0, 3, 3}[i]) * 2 + j]);
  CHECK(look_up(Tensor::of<std::int32_t>({2, 0}, {})).shape() == Shape{2, 0, 2});
  // Of any rank, which only the run knows.
  const Output any = placeholder<std::int32_t>(g, PartialShape::unknown());
  const Output of_any = net.words(any);
  for (const Shape& shape : {Shape{}, Shape{2}, Shape{1, 2, 1}}) {
    Tensor at = *Tensor::make(DType::i32, shape);
    std::fill_n(at.mutable_data<std::int32_t>(), at.elements(), 4);
    const Tensor row = session.run({of_any}, {}, {{any, at}})[0];
    REQUIRE(row.elements() == 2 * at.elements());
    CHECK(row.rank() == shape.rank() + 1);
    CHECK(row.data<float>()[0] == all.data<float>()[8]);
  }
  const auto outside =
      session.try_run({found}, {}, {{ids, Tensor::of<std::int32_t>({2, 1}, {3, 10})}});
  CHECK(outside.status().code() == Code::invalid_argument);
  CHECK(contains(outside.status().text(), "indices[1] = 10 is outside [0, 10)"));
}

TEST_CASE("a table saved in parts is refused for parts of other rows, which its value can give") {
  const testing::TemporaryDir dir;
  const std::string path = dir.path("table.safetensors"), job = dir.path("job");
  const Tensor whole = numbered({kRows, kColumns});
  struct Kept {
    Graph g;
    nn::PartitionedVariable table;
    Kept(const Tensor& initial, const nn::PartitionOptions& parts)
        : table(nn::partitioned_variable(g, "table", constant(g, initial), parts)) {
      (void)table.value();
    }
  };
  Tensor value;
  {
    Kept four(whole, {.shards = 4});
    Session session(four.g, one_thread());
    session.init();
    session.save(path);
    session.save_job(job);
    value = session.run({four.table.value()})[0];
    CHECK(Tensor::same(value, whole));
  }
  for (const nn::PartitionOptions& parts :
       {nn::PartitionOptions{2}, nn::PartitionOptions{5},
        nn::PartitionOptions{4, nn::Partition::div}, nn::PartitionOptions{5, nn::Partition::div}}) {
    CAPTURE(parts.shards);
    const bool div = parts.how == nn::Partition::div;
    Kept other(value, parts);
    Session session(other.g, one_thread());
    for (const Status& refused :
         {session.try_restore(path), session.try_restore(path, {.init_others = true}),
          session.try_restore_job(job), session.try_restore_job(job, {.same_graph = false})}) {
      CHECK_MESSAGE(!refused.ok(), refused.text());
      const bool told = contains(refused.text(), "'table/part_") ||
                        (div && contains(refused.text(), "'table/block_0'")) ||
                        (div && contains(refused.text(), "it has none of the graph's variables"));
      CHECK_MESSAGE(told, refused.text());
    }
    session.init();
    CHECK(Tensor::same(session.run({other.table.value()})[0], whole));
  }
}

TEST_CASE("a table that the file keeps otherwise is not initialised beside what is restored") {
  const testing::TemporaryDir dir;
  const nn::PartitionOptions forms[] = {{1}, {3}, {3, nn::Partition::div}};
  struct Kept {
    Graph g;
    Variable dense = variable(g, "dense", 1.f);
    nn::PartitionedVariable table;
    explicit Kept(const nn::PartitionOptions& parts)
        : table(nn::partitioned_variable(g, "net/table", constant(g, numbered({kRows, kColumns})),
                                         parts)) {
      (void)table.value();
      (void)dense.value();
    }
  };
  const auto name_of = [](const Kept& kept) {
    const GraphDef& def = kept.g.def();
    return def.nodes[kept.table.parts().front().handle().port().node].name;
  };
  for (const auto& before : forms)
    for (const auto& after : forms) {
      Kept first(before), then(after);
      CAPTURE(name_of(first));
      CAPTURE(name_of(then));
      const std::string path = dir.path("tables.safetensors");
      Session saving(first.g, one_thread());
      saving.init();
      saving.save(path);
      Session session(then.g, one_thread());
      const Status restored = session.try_restore(path, {.init_others = true});
      if (before.shards == after.shards && before.how == after.how) {
        CHECK_MESSAGE(restored.ok(), restored.text());
        continue;
      }
      CHECK(restored.code() == Code::invalid_argument);
      CHECK(contains(restored.text(),
                     "it has '" + name_of(first) + "': the table of variable '" + name_of(then)));
      CHECK(session.try_run({then.dense.value()}).status().code() == Code::failed_precondition);
      // Named, the rest is restored, and the table begins anew.
      session.restore(path, {.only = {then.dense}, .init_others = true});
      CHECK(session.run({then.table.value()})[0].dim(0) == kRows);
    }
}

TEST_CASE("a table of more or fewer parts, each as large as before, is not taken for another") {
  const testing::TemporaryDir dir;
  struct Size {
    std::int64_t rows, parts;
  };
  struct Kept {
    Graph g;
    nn::PartitionedVariable table;
    Kept(const Size& size, nn::Partition how)
        : table(nn::partitioned_variable(g, "t", constant(g, numbered({size.rows, kColumns})),
                                         {size.parts, how})) {
      (void)table.value();
    }
  };
  int n = 0;
  for (const nn::Partition how : {nn::Partition::mod, nn::Partition::div})
    for (const auto& [before, after] :
         {std::pair{Size{10, 5}, Size{8, 4}}, std::pair{Size{8, 4}, Size{10, 5}}}) {
      const Size first_size = before;
      CAPTURE(first_size.parts);
      const std::string path = dir.path("t.safetensors"), job = dir.path(std::to_string(++n));
      Kept first(before, how), then(after, how);
      Session saving(first.g, one_thread());
      saving.init();
      saving.save(path);
      saving.save_job(job);
      Session session(then.g, one_thread());
      for (const Status& refused : {session.try_restore(path), session.try_restore_job(job),
                                    session.try_restore(path, {.init_others = true})}) {
        CHECK(!refused.ok());
        CHECK_MESSAGE(contains(refused.text(), "is in other parts in the graph"), refused.text());
      }
    }
}

TEST_CASE("a table that cannot be in so many parts is refused with the line") {
  Graph g;
  const auto refused = [&](Output initial, const nn::PartitionOptions& options, const char* why) {
    try {
      nn::partitioned_variable(g, "table", initial, options);
      FAIL("not refused");
    } catch (const Error& e) {
      CHECK_MESSAGE(contains(e.status().text(), why), e.status().text());
      CHECK(contains(e.status().text(), "partitioned_variable_test.cpp"));
    }
  };
  const Output initial = constant(g, {{1.f, 2.f}, {3.f, 4.f}});
  refused(initial, {.shards = 3}, "2 rows in 3 parts");
  refused(initial, {.shards = 0}, "2 rows in 0 parts");
  refused(initial, {.shards = -1}, "2 rows in -1 parts");
  refused(constant(g, 1.f), {.shards = 2}, "a scalar has no rows");
  refused(Output(), {.shards = 2}, "the initial value");
  refused(placeholder<float>(g, PartialShape{-1, 2}), {.shards = 2}, "must be known");
  CHECK_THROWS_AS(nn::PartitionedVariable().value(), Error);
  CHECK_THROWS_AS(nn::PartitionedVariable().rows(initial), Error);
  CHECK_THROWS_AS(nn::embedding_lookup(nn::PartitionedVariable(), initial), Error);
}
