// Handles that are empty, wherever a client can write one: an Error with the line, never a crash,
// never a number that nobody wrote.
#include <doctest/doctest.h>

#include "graph/slicing.hpp"
#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "ops/metrics/metrics.hpp"
#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
#include "tests/misuse.hpp"

using namespace troupe;
using test::check_refused;
using test::check_thrown;

namespace {

struct Some {
  Graph g;
  Output x = constant<float>(g, {2, 3}, {1, 2, 3, 4, 5, 6});
  Output n = constant<std::int64_t>(g, {2}, {0, 1});
  Variable w = variable(g, "w", Tensor::of<float>(Shape{3}, {1, 2, 3}));
  Output loss = mean(x * w);
  Output none;
  Variable no_variable;
};

// A graph is as it was after what was refused.
void check_unchanged(Some& s, const std::vector<test::Misuse>& table) {
  const std::size_t before = s.g.def().nodes.size();
  check_refused(table);
  CHECK(s.g.def().nodes.size() == before);
}

}  // namespace

TEST_CASE("an empty Output beside an operator is refused on its line, on either side") {
  Some s;
  const std::string left = "the left operand is empty", right = "the right operand is empty";
  check_unchanged(s,
                  {
                      {"Mul: " + right, [&] { s.x* s.none; }},
                      {"Mul: " + left, [&] { s.none* s.x; }},
                      {"Sub: " + left, [&] { s.none - s.x; }},
                      {"Add: " + right, [&] { s.x + s.none; }},
                      {"Div: " + right, [&] { s.x / s.none; }},
                      {"Add: " + right, [&] { 1.0f + s.none; }},
                      {"Add: " + left, [&] { s.none + 1; }},
                      {"Add: " + left, [&] { s.none + s.none; }},
                      {"Neg: all inputs are empty", [&] { -s.none; }},
                      {"Equal: " + right, [&] { s.x == s.none; }},
                      {"NotEqual: " + left, [&] { s.none != s.x; }},
                      {"Less: " + right, [&] { s.x < s.none; }},
                      {"LessEqual: " + left, [&] { s.none <= 2; }},
                      {"Greater: " + right, [&] { 2 > s.none; }},
                      {"GreaterEqual: " + left, [&] { s.none >= s.x; }},
                      {"Add: " + left, [&] { s.no_variable + 1; }},
                      {"Mul: " + right, [&] { s.x* s.no_variable; }},
                      {"an operand is empty", [&] { Operand(s.none).beside(s.x); }},
                      {"what a number stands beside is empty", [&] { Operand(1).beside(s.none); }},
                      {"[]: the Output is empty", [&] { s.none[1]; }},
                      {"[]: the Output is empty",
                       [&] {
                         s.none[{whole, 0}];
                       }},
                  });
}

TEST_CASE("what is asked of an empty handle is refused on its line") {
  Some s;
  const Op no_op;
  check_refused({
      {"the Output is empty", [&] { s.none.graph(); }},
      {"the Output is empty", [&] { s.none.dtype(); }},
      {"the Output is empty", [&] { s.none.shape(); }},
      {"the Output is empty", [&] { s.none.name(); }},
      {"has no output 7", [&] { s.x.sibling(7).shape(); }},
      {"is of a node that the graph does not have",
       [&] {
         Output(&s.g, {NodeId(100'000), 0}).dtype();
       }},
      {"the Op is empty", [&] { no_op.graph(); }},
      {"the Op is empty", [&] { no_op.name(); }},
      {"the Op is empty", [&] { no_op.outputs(); }},
      {"the Op is empty", [&] { Op(s.none).name(); }},
      {"the Output is empty", [&] { no_op.output().shape(); }},
      {"the Output is empty", [&] { s.no_variable.dtype(); }},
      {"the Output is empty", [&] { s.no_variable.shape(); }},
      {"the Op is empty", [&] { s.no_variable.name(); }},
  });
  CHECK(s.no_variable.empty());
  CHECK(s.no_variable.value().empty());
  CHECK(Op(s.none).empty());
  check_thrown({{"no node 100000", [&] { s.g.node(100'000); }}});
}

TEST_CASE("no op takes an empty input, whichever") {
  Some s;
  for (const OpInfo* op : s.g.registry().all()) {
    if (op->in.empty()) continue;
    CAPTURE(op->def.name);
    for (std::size_t given = 0; given <= op->in.size(); ++given) {
      NodeSpec node{.op = op->def.name, .site = Site::here()};
      node.inputs.assign(op->in.size(), Output());
      if (given < op->in.size()) node.inputs[given] = s.x;
      const std::size_t before = s.g.def().nodes.size();
      try {
        add_node(node);
        // One input of one, which may be right.
        CHECK(op->in.size() == 1);
      } catch (const Error& e) {
        CHECK(e.status().site().known());
        if (op->in.size() > 1)
          CHECK_MESSAGE(e.status().message().find("empty") != std::string::npos, e.what());
        CHECK(s.g.def().nodes.size() == before);
      }
    }
  }
}

TEST_CASE("the functions of the graph's interface refuse empty handles on their line") {
  Some s;
  const std::vector<Output> nothing;
  const TensorArray no_list(s.none, DType::f32);
  const TensorArray list(s.g, DType::f32);
  check_unchanged(
      s, {
             {"Cast", [&] { cast<double>(s.none); }},
             {"ArgMax", [&] { argmax(s.none); }},
             {"reshape: x is empty", [&] { reshape(s.none, {1}); }},
             {"flatten: x is empty", [&] { flatten(s.none); }},
             {"`logits` is empty", [&] { softmax_cross_entropy(s.none, s.n); }},
             {"`labels` is empty", [&] { softmax_cross_entropy(s.x, s.none); }},
             {"MaxPool", [&] { max_pool(s.none, 2); }},
             {"dropout: x is empty", [&] { dropout(s.none, 0.5); }},
             {"AddN: no input is given", [&] { add_n(nothing); }},
             {"AddN: input 1 is empty",
              [&] {
                add_n({s.x, s.none});
              }},
             {"its initial value is empty", [&] { variable(s.g, "v", s.none); }},
             {"a Tensor of nothing", [&] { variable(s.g, "v", Tensor()); }},
             {"read: the variable is empty", [&] { read(s.no_variable); }},
             {"read: Op 0 is empty", [&] { read(s.w, {Op()}); }},
             {"Assign: input 0 is empty", [&] { assign(s.no_variable, s.x); }},
             {"Assign: input 1 is empty", [&] { assign(s.w, s.none); }},
             {"AssignAdd: input 1 is empty", [&] { assign_add(s.w, s.none); }},
             {"ScatterAdd: input 1 is empty", [&] { scatter_add(s.w, s.none, s.x); }},
             {"ScatterUpdate: input 2 is empty", [&] { scatter_update(s.w, s.n, s.none); }},
             {"a variable of the list is empty",
              [&] {
                distinct({s.w, s.no_variable});
              }},
             {"group: Op 1 is empty",
              [&] {
                group(s.g, {Op(s.x), Op()});
              }},
             {"with_control: an Op is empty", [&] { auto guard = s.g.with_control({Op()}); }},
             {"move_average: the average is empty", [&] { move_average(s.no_variable, 0.1, s.x); }},
             {"move_average: the value is empty", [&] { move_average(s.w, 0.1, s.none); }},
             {"moving_averages: y is empty", [&] { moving_averages(s.none); }},
             {"TensorArray: `rows` is empty", [&] { TensorArray::unstack(s.none); }},
             {"empty", [&] { no_list.read(s.n); }},
             {"empty", [&] { no_list.size(); }},
             {"empty", [&] { no_list.stack(); }},
             {"the list is empty", [&] { no_list.push(s.x); }},
             {"the list is empty", [&] { no_list.write(s.n, s.x); }},
             {"the element is empty", [&] { list.push(s.none); }},
             {"input 1 is empty", [&] { list.read(s.none); }},
             {"Const", [&] { constant(s.g, Tensor()); }},
         });
}

TEST_CASE("bodies that return empty handles are refused on the line of what holds them") {
  Some s;
  const Output yes = constant(s.g, true), zero = constant(s.g, std::int64_t{0});
  const auto empty = [](auto...) { return Output(); };
  const std::function<Output()> no_function;
  const Output first = constant(s.g, 0.0f);
  check_unchanged(
      s,
      {
          {"the predicate is empty",
           [&] {
             cond(
                 s.none, [&] { return s.x; }, [&] { return s.x; });
           }},
          {"is empty", [&] { cond(yes, empty, [&] { return s.x; }); }},
          {"is empty",
           [&] {
             cond(
                 yes, [&] { return s.x; }, empty);
           }},
          {"the index is empty", [&] { switch_case(s.none, {[&] { return s.x; }}); }},
          {"is empty", [&] { switch_case(zero, {[] { return Output(); }}); }},
          {"body 1 is an empty function",
           [&] {
             switch_case(zero, {[&] { return s.x; }, no_function});
           }},
          {"there is no body", [&] { switch_case(zero, {}); }},
          {"body 0 is an empty function", [&] { switch_case_op(zero, {nullptr}); }},
          {"variable 0 is empty", [&] { while_loop(s.none, empty, [](Output o) { return o; }); }},
          {"is empty", [&] { while_loop(first, empty, [](Output o) { return o; }); }},
          {"is empty",
           [&] {
             while_loop(
                 first, [](Output o) { return o < 1; }, empty);
           }},
          {"is empty",
           [&] {
             function(s.g, "f", {f32_scalar}, {f32_scalar},
                      [](Function&, Output) { return Output(); });
           }},
          {"has 0 arguments, and its body takes more",
           [&] { function(s.g, "f", {}, {f32_scalar}, [](Function&, Output o) { return o; }); }},
      });
  check_refused({
      {"what the body returns is empty", [&] { map(s.x, empty); }},
      {"a tensor is empty", [&] { map(s.none, [](Output o) { return o; }); }},
      {"a value of the first state is empty",
       [&] { fold(s.x, s.none, [](Output sum, Output) { return sum; }); }},
      {"is empty", [&] { fold(s.x, first, empty); }},
      {"a value of the first state is empty",
       [&] { scan(s.x, s.none, [](Output h, Output) {
               return std::pair{h, h};
             }); }},
      {"is empty",
       [&] { scan(s.x, first, [](Output, Output) {
               return std::pair{Output(), Output()};
             }); }},
  });
  Function twice =
      function(s.g, "twice", {f32_scalar}, {f32_scalar}, [](Function&, Output o) { return o + o; });
  check_unchanged(s, {
                         {"input 0 is empty", [&] { twice(s.none); }},
                         {"input 0 is empty", [&] { twice(s.no_variable); }},
                         {"input 0 is empty", [&] { twice.call({s.none}); }},
                     });
}

TEST_CASE("layers refuse empty handles on their line") {
  Some s;
  struct Net : nn::Module {
    using Module::Module;
    nn::Linear linear{*this, "linear", 3, 2};
    nn::Conv2d conv{*this, "conv", 1, 1, 3};
    nn::MaxPool pool;
    nn::BatchNorm norm{*this, "norm", 3};
    nn::LayerNorm layer{*this, "layer", 3};
    nn::Dropout drop{*this, "drop", 0.5};
    nn::Embedding embedding{*this, "embedding", 4, 2};
    nn::MultiHeadAttention heads{*this, "heads", 4, 2};
    nn::Lstm lstm{*this, "lstm", 3, 2};
    nn::Gru gru{*this, "gru", 3, 2};
    nn::Sequential list{*this, "list"};
  } net{s.g.scope("net")};
  const Output sequence = placeholder<float>(s.g, {5, 2, 3});
  const Output state = constant(s.g, Tensor::of<float>(Shape{2, 2}, {0, 0, 0, 0}));
  const nn::LstmCell::State half{state, Output()};
  const std::function<Output(Output)> no_function;
  net.list.add([](Output) { return Output(); });
  check_refused({
      {"Linear: x is empty", [&] { net.linear(s.none); }},
      {"Conv2d: x is empty", [&] { net.conv(s.none); }},
      {"MaxPool: x is empty", [&] { net.pool(s.none); }},
      {"BatchNorm: x is empty", [&] { net.norm(s.none); }},
      {"LayerNorm: x is empty", [&] { net.layer(s.none); }},
      {"Dropout: x is empty", [&] { net.drop(s.none); }},
      {"Embedding: `ids` is empty", [&] { net.embedding(s.none); }},
      {"MultiHeadAttention: `queries` is empty", [&] { net.heads(s.none); }},
      {"MultiHeadAttention: `keys` is empty", [&] { net.heads(sequence, s.none, sequence); }},
      {"MultiHeadAttention: `values` is empty", [&] { net.heads(sequence, sequence, s.none); }},
      {"attention: q is empty", [&] { nn::scaled_dot_product_attention(s.none, s.x, s.x); }},
      {"attention: k is empty", [&] { nn::scaled_dot_product_attention(s.x, s.none, s.x); }},
      {"attention: v is empty", [&] { nn::scaled_dot_product_attention(s.x, s.x, s.none); }},
      {"is empty", [&] { net.lstm(s.none); }},
      {"is empty", [&] { net.gru(s.none); }},
      {"not empty", [&] { net.lstm(sequence, half); }},
      {"not empty", [&] { net.gru(sequence, nn::GruCell::State{}); }},
      {"is empty", [&] { net.lstm(std::vector<Output>{s.none}); }},
      {"is empty",
       [&] {
         net.gru(std::vector<Output>{s.x, s.none});
       }},
      {"at least one step", [&] { net.gru(std::vector<Output>{}); }},
      {"is empty", [&] { net.lstm.cell()(s.x, half); }},
      {"is empty",
       [&] {
         net.lstm.cell()(s.none, {state, state});
       }},
      {"is empty", [&] { net.lstm.cell().zero_state(s.none); }},
      {"is empty", [&] { net.gru.cell().zero_state(s.none); }},
      {"Sequential: x is empty", [&] { net.list(s.none); }},
      {"what layer 0 returns is empty", [&] { net.list(s.x); }},
      {"the function is empty", [&] { net.list.add(no_function); }},
  });
}

TEST_CASE("training refuses empty handles on their line") {
  Some s;
  const optim::Gradients none;
  optim::Gradients no_value{{{s.w, Output()}}}, no_variable{{{Variable(), s.x}}};
  optim::Gradients good = optim::gradients(s.loss), no_write = good;
  no_write.writes.emplace_back();
  const std::string no_gradients = "no gradients";
  check_refused({
      {"the loss is empty", [&] { optim::gradients(s.none); }},
      {"the loss is empty", [&] { optim::gradients(s.none, {s.w}); }},
      {"a variable of the list is empty", [&] { optim::gradients(s.loss, {s.no_variable}); }},
      {"the loss is empty", [&] { optim::Sgd{}.minimize(s.none); }},
      {"the rate lr is empty", [&] { optim::Sgd{.lr = s.none}.minimize(s.loss); }},
      {"the rate lr is empty", [&] { optim::Sgd{.lr = s.no_variable}.minimize(s.loss); }},
      {"the rate beta1 is empty", [&] { optim::Adam{.beta1 = s.none}.minimize(s.loss); }},
      {"the rate momentum is empty", [&] { optim::Momentum{.momentum = s.none}.apply(good); }},
      {"the rate weight_decay is empty", [&] { optim::AdamW{.weight_decay = s.none}.apply(good); }},
      {"apply: " + no_gradients, [&] { optim::Sgd{}.apply(none); }},
      {"gradient 0, of 'w', is empty", [&] { optim::Sgd{}.apply(no_value); }},
      {"gradient 0 has a variable that is empty", [&] { optim::Adam{}.apply(no_variable); }},
      {"group: Op 0 is empty", [&] { optim::Sgd{}.apply(no_write); }},
      {"accumulate: " + no_gradients, [&] { optim::accumulate(none, 2); }},
      {"gradient 0, of 'w', is empty", [&] { optim::accumulate(no_value, 2); }},
      {"gradient 0 has a variable that is empty", [&] { optim::accumulate(no_variable, 2); }},
      {"gradient 0, of 'w', is empty", [&] { optim::clip_by_norm(no_value, 1); }},
      {"gradient 0, of 'w', is empty", [&] { optim::clip_by_value(no_value, 0, 1); }},
      {"gradient 0, of 'w', is empty", [&] { optim::clip_by_global_norm(no_value, 1); }},
      {"clip_by_global_norm: " + no_gradients, [&] { optim::clip_by_global_norm(none, 1); }},
      {"gradient 0, of 'w', is empty", [&] { optim::global_norm(no_value); }},
      {"gradient 0, of 'w', is empty", [&] { optim::over_replicas(no_value); }},
      {"the function is empty", [&] { optim::Schedule(nullptr); }},
      {"its rate is empty",
       [&] {
         const optim::Schedule nothing([](Output) { return Output(); });
         optim::Sgd{.lr = nothing}.minimize(s.loss);
       }},
      {"the step is empty", [&] { optim::Schedule([](Output o) { return o; })(s.none); }},
  });
}

TEST_CASE("measures refuse empty handles on their line") {
  Some s;
  const Scope scope = s.g.scope("measures");
  check_refused({
      {"mean: `values` is empty", [&] { metrics::mean(scope, s.none); }},
      {"accuracy: `predictions` is empty", [&] { metrics::accuracy(scope, s.none, s.n); }},
      {"accuracy: `labels` is empty", [&] { metrics::accuracy(scope, s.n, s.none); }},
      {"confusion: `predictions` is empty", [&] { metrics::confusion(scope, s.none, s.n, 3); }},
      {"confusion: `labels` is empty", [&] { metrics::confusion(scope, s.n, s.none, 3); }},
      {"auc: `scores` is empty", [&] { metrics::auc(scope, s.none, s.n); }},
      {"auc: `labels` is empty", [&] { metrics::auc(scope, s.x, s.none); }},
  });
}

TEST_CASE("descriptions of data that cannot be are refused where they are asked for") {
  Some s;
  check_refused({
      {"describing a dataset", [&] { data::tensors({Tensor()}).outputs(s.g); }},
      {"describing a dataset", [&] { data::tensors({}).outputs(s.g); }},
      {"describing a dataset", [&] { data::interleave({}).outputs(s.g); }},
      {"describing a dataset", [&] { data::csv("a.csv", {}).outputs(s.g); }},
      {"map",
       [&] {
         data::tensors({Tensor::of<float>(Shape{2}, {1, 2})}).map(s.g, [](Output) {
           return Output();
         });
       }},
  });
}
