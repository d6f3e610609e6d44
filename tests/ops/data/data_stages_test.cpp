// Stages of input pipelines, against an eager version of each that keeps all passes in memory.
#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <numeric>
#include <sstream>

#include "core/hash.hpp"
#include "ops/api.hpp"
#include "ops/data/stage_kind.hpp"
#include "tests/ops/data/data_files.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// An i64 array of any rank.
struct Array {
  std::vector<std::int64_t> dims, elements;
  friend bool operator==(const Array&, const Array&) = default;
};

Array array_of(const Tensor& t) {
  REQUIRE(t.dtype() == DType::i64);
  return {{t.shape().dims().begin(), t.shape().dims().end()},
          {t.span<std::int64_t>().begin(), t.span<std::int64_t>().end()}};
}

using Arrays = std::vector<Array>;
// All examples of a pass, by its number.
using Passes = std::function<Arrays(std::uint64_t)>;

// A pipeline, and what it is to give.
struct Both {
  data::Examples examples;
  Passes passes;
  std::size_t rank = 1;
  bool alike = true;  // all examples have one shape
  // And what keys the draws of each in the pipeline that was opened last.
  std::vector<std::pair<ExampleFunctionPtr, std::shared_ptr<std::uint64_t>>> functions = {};

  Expected<Pipeline> open(Graph& g, const data::Examples& whole) const {
    const std::string name = "opened_" + std::to_string(g.def().nodes.size());
    std::vector<ExampleFunctionPtr> calls;
    for (const auto& [call, draws] : functions) {
      *draws = hash_combine(hash_text(name), calls.size());
      calls.push_back(call);
    }
    return open_examples(whole, g, calls, name);
  }
};

// What `map` does in these pipelines: 2 x + d, where d is drawn.
std::int64_t mapped(std::int64_t x, std::uint64_t draw) { return 2 * x + std::int64_t(draw % 5); }

class Mapped final : public ExampleFunction {
 public:
  explicit Mapped(Signature signature) : signature_(std::move(signature)) {}
  const Signature& arguments() const override { return signature_; }
  const Signature& results() const override { return signature_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) override {
    Tensor out = Tensor::make(DType::i64, values[0].shape()).value();
    std::transform(
        values[0].data<std::int64_t>(), values[0].data<std::int64_t>() + values[0].elements(),
        out.mutable_data<std::int64_t>(), [draw](std::int64_t x) { return mapped(x, draw); });
    return std::vector{out};
  }
  ExampleFunctionPtr another() const override { return std::make_shared<Mapped>(signature_); }

 private:
  Signature signature_;
};

// What `filter` does in these pipelines.
bool stays(const std::vector<std::int64_t>& elements, std::uint64_t draw) {
  std::uint64_t sum = draw;
  for (std::int64_t x : elements) sum += std::uint64_t(x);
  return sum % 3 != 0;
}

class Stays final : public ExampleFunction {
 public:
  explicit Stays(Signature signature) : signature_(std::move(signature)) {}
  const Signature& arguments() const override { return signature_; }
  const Signature& results() const override { return results_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) override {
    return std::vector{Tensor::scalar<bool>(stays(array_of(values[0]).elements, draw))};
  }

 private:
  Signature signature_, results_ = {{DType::bool_, PartialShape::scalar()}};
};

// Of two components the second.
class Second final : public ExampleFunction {
 public:
  explicit Second(Signature signature)
      : signature_(std::move(signature)), results_{signature_[1]} {}
  const Signature& arguments() const override { return signature_; }
  const Signature& results() const override { return results_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t) override {
    return std::vector{values[1]};
  }

 private:
  Signature signature_, results_;
};

Arrays shuffled(Arrays all, std::uint64_t window, std::uint64_t seed, std::uint64_t pass) {
  Random random(hash_combine(mix64(seed), pass));
  for (std::size_t i = 0; window > 1 && i < all.size(); ++i)
    std::swap(all[i], all[i + random.below(std::min<std::uint64_t>(window, all.size() - i))]);
  return all;
}

// Each element at its place, one by one.
Array padded(const Arrays& batch, std::int64_t value) {
  Array out;
  out.dims = {std::int64_t(batch.size())};
  for (std::size_t d = 0; d < batch[0].dims.size(); ++d) {
    out.dims.push_back(0);
    for (const Array& a : batch) out.dims.back() = std::max(out.dims.back(), a.dims[d]);
  }
  const std::int64_t size =
      std::accumulate(out.dims.begin(), out.dims.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < size; ++i) {
    std::vector<std::int64_t> at(out.dims.size());
    std::int64_t left = i;
    for (std::size_t d = at.size(); d-- > 0; left /= out.dims[d]) at[d] = left % out.dims[d];
    const Array& from = batch[std::size_t(at[0])];
    std::int64_t flat = 0;
    bool inside = true;
    for (std::size_t d = 0; d < from.dims.size(); ++d) {
      inside = inside && at[d + 1] < from.dims[d];
      flat = flat * from.dims[d] + at[d + 1];
    }
    out.elements.push_back(inside ? from.elements[std::size_t(flat)] : value);
  }
  return out;
}

Arrays batched(const Arrays& all, std::size_t size, bool drop, std::int64_t value) {
  Arrays out;
  for (std::size_t i = 0; i < all.size(); i += size) {
    const std::size_t end = std::min(all.size(), i + size);
    if (drop && end - i < size) break;
    out.push_back(
        padded({all.begin() + std::ptrdiff_t(i), all.begin() + std::ptrdiff_t(end)}, value));
  }
  return out;
}

Arrays bucketed(const Arrays& all, const std::vector<std::int64_t>& ends,
                const std::vector<std::int64_t>& sizes, bool drop) {
  Arrays out;
  std::vector<Arrays> buckets(sizes.size());
  for (const Array& a : all) {
    std::size_t b = 0;
    while (b < ends.size() && a.dims[0] >= ends[b]) ++b;
    buckets[b].push_back(a);
    if (std::int64_t(buckets[b].size()) == sizes[b]) {
      out.push_back(padded(buckets[b], 0));
      buckets[b].clear();
    }
  }
  for (const Arrays& bucket : buckets)
    if (!drop && !bucket.empty()) out.push_back(padded(bucket, 0));
  return out;
}

class Generator {
 public:
  Generator(std::uint64_t seed, const DataDirectory& files) : random_(seed), files_(files) {}

  Graph graph;  // of the functions

  Both pipeline() {
    Both both = flip() ? tensors() : lines();
    for (std::uint64_t n = random_.below(5); n > 0; --n) both = stage(std::move(both));
    return both;
  }

 private:
  bool flip() { return random_.below(2) == 0; }
  std::int64_t up_to(std::int64_t most) {
    return 1 + std::int64_t(random_.below(std::uint64_t(most)));
  }

  Both tensors() {
    const std::int64_t count = up_to(40), width = up_to(4);
    Tensor t = Tensor::make(DType::i64, Shape{count, width}).value();
    Arrays all;
    for (std::int64_t i = 0; i < count; ++i) {
      Array row{{width}, {}};
      for (std::int64_t k = 0; k < width; ++k) row.elements.push_back(next_++);
      std::copy(row.elements.begin(), row.elements.end(),
                t.mutable_data<std::int64_t>() + i * width);
      all.push_back(row);
    }
    return {data::tensors({t}), [all](std::uint64_t) { return all; }};
  }

  Both lines() {
    const data::Vocabulary letters("abcdefgh");
    std::string text;
    Arrays all;
    for (std::int64_t n = up_to(30); n > 0; --n) {
      Array line;
      for (std::int64_t k = up_to(7) - 1; k > 0; --k) {
        line.elements.push_back(std::int64_t(random_.below(8)));
        text += letters.characters()[std::size_t(line.elements.back())];
      }
      text += flip() ? "\r\n" : "\n";
      line.dims = {std::int64_t(line.elements.size())};
      all.push_back(line);
    }
    const std::string path = files_.write("lines" + std::to_string(next_++), text);
    return {data::lines(path, letters), [all](std::uint64_t) { return all; }, 1, false};
  }

  Both stage(Both below) {
    const Passes f = below.passes;
    switch (random_.below(15)) {
      case 0: {
        const std::int64_t n = up_to(30);
        below.examples = below.examples.take(n);
        below.passes = [=](std::uint64_t p) {
          Arrays all = f(p);
          all.resize(std::min(all.size(), std::size_t(n)));
          return all;
        };
        return below;
      }
      case 1: {
        const std::int64_t n = up_to(10);
        below.examples = below.examples.skip(n);
        below.passes = [=](std::uint64_t p) {
          Arrays all = f(p);
          all.erase(all.begin(),
                    all.begin() + std::ptrdiff_t(std::min(all.size(), std::size_t(n))));
          return all;
        };
        return below;
      }
      case 2: {
        const std::int64_t n = up_to(4), index = up_to(n) - 1;
        below.examples = below.examples.shard(n, index);
        below.passes = [=](std::uint64_t p) {
          Arrays out, all = f(p);
          for (std::size_t i = 0; i < all.size(); ++i)
            if (std::int64_t(i) % n == index) out.push_back(all[i]);
          return out;
        };
        return below;
      }
      case 3: {
        const std::int64_t window = up_to(50);
        const std::uint64_t seed = random_();
        below.examples = below.examples.shuffle(window, seed);
        below.passes = [=](std::uint64_t p) {
          return shuffled(f(p), std::uint64_t(window), seed, p);
        };
        return below;
      }
      case 4: {
        const std::int64_t n = up_to(3);
        below.examples = below.examples.repeat(n);
        below.passes = [=](std::uint64_t p) {
          Arrays out;
          for (std::int64_t k = 0; k < n; ++k)
            for (Array& a : f(p * std::uint64_t(n) + std::uint64_t(k))) out.push_back(std::move(a));
          return out;
        };
        return below;
      }
      case 5:
        return interleaved(std::move(below));
      case 6:
        return batch(std::move(below));
      case 7:
        return map(std::move(below));
      case 8:
        return filter(std::move(below));
      case 9:
        return unbatch(std::move(below));
      case 10:
        below.examples = below.examples.cache();
        below.passes = [=](std::uint64_t) { return f(0); };
        return below;
      case 11:
        return zip(std::move(below));
      case 12:
        return in_turn(std::move(below));
      case 13:
        below.examples = below.examples.skip_errors(up_to(3));
        return below;
      default:
        return bucket(std::move(below));
    }
  }

  Both interleaved(Both below) {
    std::vector<Both> inputs = {below};
    for (std::int64_t n = up_to(2); n > 0; --n) {
      Both other = flip() ? tensors() : lines();
      if (other.rank == below.rank) inputs.push_back(std::move(other));
    }
    std::vector<data::Examples> examples;
    decltype(below.functions) functions;
    for (const Both& input : inputs) {
      examples.push_back(input.examples);
      functions.insert(functions.end(), input.functions.begin(), input.functions.end());
    }
    return {data::interleave(examples),
            [inputs](std::uint64_t p) {
              std::vector<Arrays> all;
              std::size_t longest = 0;
              for (const Both& input : inputs) {
                all.push_back(input.passes(p));
                longest = std::max(longest, all.back().size());
              }
              Arrays out;
              for (std::size_t i = 0; i < longest; ++i)
                for (const Arrays& one : all)
                  if (i < one.size()) out.push_back(one[i]);
              return out;
            },
            below.rank, false, std::move(functions)};
  }

  Both map(Both below) {
    const Passes f = below.passes;
    auto draws = std::make_shared<std::uint64_t>(0);
    below.functions.emplace_back(std::make_shared<Mapped>(below.examples.signature().value()),
                                 draws);
    const data::MapOptions options{.parallel = flip() ? 1 : up_to(4)};
    below.examples = below.examples.map(
        graph, [](Output x) { return 2 * x; }, options);
    below.passes = [=](std::uint64_t p) {
      Arrays all = f(p);
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::int64_t& x : all[i].elements)
          x = mapped(x, hash_combine(hash_combine(*draws, p), i));
      return all;
    };
    return below;
  }

  Both filter(Both below) {
    const Passes f = below.passes;
    auto draws = std::make_shared<std::uint64_t>(0);
    below.functions.emplace_back(std::make_shared<Stays>(below.examples.signature().value()),
                                 draws);
    below.examples = below.examples.filter(graph, [](Output x) { return all(x == x); });
    below.passes = [=](std::uint64_t p) {
      Arrays out, all = f(p);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (stays(all[i].elements, hash_combine(hash_combine(*draws, p), i))) out.push_back(all[i]);
      return out;
    };
    return below;
  }

  Both unbatch(Both below) {
    if (below.rank < 2) return below;
    const Passes f = below.passes;
    below.examples = below.examples.unbatch();
    below.passes = [=](std::uint64_t p) {
      Arrays out;
      for (const Array& a : f(p))
        for (std::int64_t row = 0; row < a.dims[0]; ++row) {
          const std::ptrdiff_t size = std::ptrdiff_t(a.elements.size()) / a.dims[0];
          out.push_back({{a.dims.begin() + 1, a.dims.end()},
                         {a.elements.begin() + row * size, a.elements.begin() + (row + 1) * size}});
        }
      return out;
    };
    --below.rank;
    return below;
  }

  // Beside another one, of which nothing is left but how many it has.
  Both zip(Both below) {
    const Both other = flip() ? tensors() : lines();
    const Passes f = below.passes, g = other.passes;
    below.functions.insert(below.functions.begin(), other.functions.begin(), other.functions.end());
    const data::Examples both = data::zip({other.examples, below.examples});
    below.functions.emplace_back(std::make_shared<Second>(both.signature().value()),
                                 std::make_shared<std::uint64_t>(0));
    below.examples = both.map(graph, [](Output, Output second) { return second; });
    below.passes = [=](std::uint64_t p) {
      Arrays all = f(p);
      all.resize(std::min(all.size(), g(p).size()));
      return all;
    };
    return below;
  }

  Both in_turn(Both below) {
    std::vector<Both> inputs = {below};
    for (std::int64_t n = up_to(3); n > 0; --n) {
      Both other = flip() ? tensors() : lines();
      if (other.rank == below.rank) inputs.push_back(std::move(other));
    }
    std::vector<data::Examples> examples;
    for (const Both& input : inputs) examples.push_back(input.examples);
    const std::int64_t at_once = up_to(5) - 1, block = up_to(3);
    return {data::interleave(examples, {.at_once = at_once, .block = block}),
            [=](std::uint64_t p) {
              std::deque<Arrays> waiting;
              for (const Both& input : inputs) waiting.push_back(input.passes(p));
              std::vector<std::optional<Arrays>> places(at_once == 0 ? inputs.size()
                                                                     : std::size_t(at_once));
              Arrays out;
              for (std::size_t turn = 0; !places.empty();) {
                std::int64_t taken = 0;
                // One that ends in its turn is followed by another, with a turn of its own.
                while (taken < block) {
                  auto& place = places[turn];
                  if (!place) {
                    if (waiting.empty()) break;
                    place = std::move(waiting.front());
                    waiting.pop_front();
                  }
                  if (place->empty()) {
                    place.reset();
                    taken = 0;
                    continue;
                  }
                  out.push_back(place->front());
                  place->erase(place->begin());
                  ++taken;
                }
                if (places[turn])
                  ++turn;
                else
                  places.erase(places.begin() + std::ptrdiff_t(turn));
                if (turn == places.size()) turn = 0;
              }
              return out;
            },
            below.rank, false, below.functions};
  }

  Both batch(Both below) {
    const std::int64_t size = up_to(6);
    const bool drop = flip();
    const auto remainder = drop ? data::Remainder::drop : data::Remainder::keep;
    const Passes f = below.passes;
    const std::int64_t value = below.alike ? 0 : -up_to(9);
    if (below.rank >= 4) return below;
    below.examples =
        below.alike ? below.examples.batch(size, remainder)
                    : below.examples.padded_batch(
                          size, {{PartialShape::unknown_of_rank(int(below.rank)), double(value)}},
                          remainder);
    below.passes = [=](std::uint64_t p) { return batched(f(p), std::size_t(size), drop, value); };
    ++below.rank;
    below.alike = below.alike && drop;
    return below;
  }

  Both bucket(Both below) {
    if (below.rank >= 4) return below;
    const std::int64_t first = up_to(3);
    const std::vector<std::int64_t> ends = {first, first + up_to(3)};
    const std::vector<std::int64_t> sizes = {up_to(4), up_to(4), up_to(4)};
    const bool drop = flip();
    const Passes f = below.passes;
    below.examples = below.examples.bucket_by_length(
        ends, sizes, {{PartialShape::unknown_of_rank(int(below.rank)), 0}},
        drop ? data::Remainder::drop : data::Remainder::keep);
    below.passes = [=](std::uint64_t p) { return bucketed(f(p), ends, sizes, drop); };
    ++below.rank;
    below.alike = false;
    return below;
  }

  Random random_;
  const DataDirectory& files_;
  std::int64_t next_ = 0;
};

Array element_of(Pipeline& pipeline, std::uint64_t number) {
  auto values = pipeline.element(number);
  REQUIRE_MESSAGE(values.ok(), values.status().text());
  REQUIRE(values->size() == 1);
  return array_of((*values)[0]);
}

void check_end(Pipeline& pipeline, std::uint64_t elements) {
  for (std::uint64_t after : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}})
    CHECK(is_dataset_end(pipeline.element(elements + after).status()));
  if (elements > 0) CHECK(pipeline.element(elements - 1).ok());  // it is no less there
  CHECK(pipeline.elements() == elements);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

TEST_CASE("random pipelines give what eager ones do, asked in order or not") {
  const DataDirectory files;
  int opened = 0, elements = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    Generator generator(seed, files);
    const Both both = generator.pipeline();
    auto ordered = both.open(generator.graph, both.examples);
    const Arrays all = both.passes(0);
    if (!ordered.ok()) {
      // Nothing to give, which shows when it is opened where the number of examples is known.
      CHECK(all.empty());
      continue;
    }
    ++opened;
    elements += int(all.size());
    for (std::size_t e = 0; e < all.size(); ++e) CHECK(element_of(*ordered, e) == all[e]);
    check_end(*ordered, all.size());
    auto jumping = both.open(generator.graph, both.examples).value();
    const Arrays others = both.passes(0);  // drawn for another dataset
    Random random(seed);
    for (std::size_t i = 0; i < 2 * others.size(); ++i) {
      const std::size_t e = random.below(others.size());
      CHECK(element_of(jumping, e) == others[e]);
    }
    check_end(jumping, others.size());
  }
  CHECK(opened > 400);
  CHECK(elements > 4000);
}

TEST_CASE("a random pipeline that never ends gives pass after pass") {
  const DataDirectory files;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    Generator generator(seed, files);
    const Both both = generator.pipeline();
    auto pipeline = both.open(generator.graph, both.examples.repeat());
    Arrays all;
    for (std::uint64_t pass = 0; pass < 4; ++pass)
      for (Array& a : both.passes(pass)) all.push_back(std::move(a));
    if (!pipeline.ok() || all.empty()) {
      CHECK(all.empty());
      continue;
    }
    Random random(seed);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t e = random.below(all.size());
      CHECK(element_of(*pipeline, e) == all[e]);
    }
  }
}

TEST_CASE("a place far ahead in a pipeline of tensors is reached at once") {
  const auto rows = data::tensors({Tensor::of<std::int64_t>({5}, {0, 1, 2, 3, 4})});
  auto pipeline =
      open_examples(data::interleave({rows.shard(2, 1), rows.skip(1)}).repeat().skip(3).batch(2))
          .value();
  // Passes of 1 1 3 2 3 4: from the fourth on in twos.
  const std::uint64_t far = 3'000'000'000'000'000;
  CHECK(element_of(pipeline, far).elements == std::vector<std::int64_t>{2, 3});
  CHECK(element_of(pipeline, far + 1).elements == std::vector<std::int64_t>{4, 1});
  CHECK(element_of(pipeline, 2).elements == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("going back in a long stream goes on from a place that is remembered") {
  const DataDirectory files;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::string(1, char('a' + i % 26)) + "\n";
  auto pipeline = open_examples(data::lines(files.write("long", text),
                                            data::Vocabulary("abcdefghijklmnopqrstuvwxyz")))
                      .value();
  for (std::uint64_t e : {19'999, 3, 15'000, 14'999, 7'000, 0, 19'998})
    CHECK(element_of(pipeline, e).elements[0] == std::int64_t(e % 26));
  check_end(pipeline, 20'000);
}

namespace {

// A text of letters, one a line, of which it is counted what is read.
struct LetterFile {
  explicit LetterFile(int lines) {
    for (int i = 0; i < lines; ++i) text += std::string(1, char('a' + i % 26)) + "\n";
  }

  // The dataset that gives x.
  Pipeline open(const Output& x) {
    const GraphBuilder& g = x.graph();
    return open_dataset(
               g.node(g.node(x.node()).inputs[0].node),
               [this](const std::string& path) -> Expected<DataFilePtr> {
                 return DataFilePtr(std::make_shared<Counted>(memory_file(path, text), bytes));
               })
        .value();
  }

  class Counted final : public DataFile {
   public:
    Counted(DataFilePtr file, std::uint64_t& bytes) : file_(std::move(file)), bytes_(bytes) {}
    const std::string& name() const override { return file_->name(); }
    std::uint64_t size() const override { return file_->size(); }
    Status read_at(std::uint64_t offset, std::span<char> out) const override {
      bytes_ += out.size();
      return file_->read_at(offset, out);
    }

   private:
    DataFilePtr file_;
    std::uint64_t& bytes_;
  };

  std::string text;
  std::uint64_t bytes = 0;
};

const data::Vocabulary kLetters("abcdefghijklmnopqrstuvwxyz");

}  // namespace

TEST_CASE("who takes every fourth element of a stream goes back to a place that is remembered") {
  LetterFile file(200'000);
  Graph g;
  auto pipeline = file.open(data::lines("text", kLetters).batch(1).outputs(g)[0]);
  for (std::uint64_t e = 1; e < 200'000; e += 4) REQUIRE(pipeline.element(e).ok());
  const std::uint64_t before = file.bytes;
  REQUIRE(pipeline.element(190'001).ok());
  CHECK(file.bytes - before < file.text.size() / 4);
}

TEST_CASE("a stream that is asked for neighbours in any order is read once") {
  LetterFile file(50'000);
  Graph g;
  const Output x = data::lines("text", kLetters)
                       .shuffle(30'000, 3)  // more than is remembered
                       .batch(1)
                       .outputs(g)[0];
  auto pipeline = file.open(x);
  std::vector<std::int64_t> letters(26);
  for (std::uint64_t e = 0; e < 50'000; e += 4)
    for (std::uint64_t other : {3, 0, 2, 1}) {
      auto element = pipeline.element(e + other);
      REQUIRE(element.ok());
      ++letters[std::size_t((*element)[0].span<std::int64_t>()[0])];
    }
  CHECK(file.bytes < 2 * file.text.size());
  for (int i = 0; i < 26; ++i) CHECK(letters[std::size_t(i)] == 50'000 / 26 + (i < 50'000 % 26));
}

TEST_CASE("stages refuse what they cannot do, saying why") {
  const auto rows = data::tensors({Tensor::of<std::int64_t>({2, 2}, {0, 1, 2, 3})});
  const auto other = data::tensors({Tensor::of<float>({2, 2}, {0, 1, 2, 3})});
  const std::pair<data::Examples, const char*> wrong[] = {
      {rows.take(-1), "-1 is less than 0"},
      {rows.shard(0, 0), "0 is less than 1"},
      {rows.shard(2, 2), "shards are counted from 0"},
      {rows.shuffle(-5), "-5 is less than 0"},
      {rows.repeat(-2), "-2 is less than -1"},
      {rows.batch(0), "0 is less than 1"},
      {rows.padded_batch(2, {{{3}, 0.5}}), "cannot be padded with 0.5"},
      {rows.padded_batch(2, {{{3, 3}, 0}}), "are incompatible"},
      {rows.padded_batch(2, {{}, {}}), "paddings for 2 components"},
      {rows.bucket_by_length({4, 4}, {1, 1, 1}), "4 is less than 5"},
      {rows.bucket_by_length({4}, {1}), "1 boundaries part lengths in 2 buckets"},
      {rows.bucket_by_length({4}, {1, 1}, {}, data::Remainder::keep, 1), "has no length"},
      {data::interleave({rows, other}), "interleaved sources differ: i64[2] and f32[2]"},
      {data::interleave({}), "the list of datasets is empty"},
      {data::Examples::of("magic 7", {}), "there is no stage or source 'magic'"},
      {data::Examples::of("batch 2 keep", {}), "has no stage to stand on"},
      {data::Examples::of("tensors f32 [2", {}), "is no shape"},
      {data::Examples::of("lines \"a", {}), "is no stage of a pipeline"},
      {data::Examples::of("", {}), "is no stage of a pipeline"},
  };
  for (const auto& [examples, expected] : wrong) {
    const Status status = examples.signature().status();
    const char* says = expected;  // clang 14: no lambda captures a structured binding
    CHECK_MESSAGE(status.text().find(says) != std::string::npos, status.text() << " / " << says);
    Graph g;
    CHECK_THROWS_AS(examples.outputs(g), Error);
  }
}

TEST_CASE("a batch of examples that differ in shape is refused, and padding that is too short") {
  const DataDirectory files;
  const auto lines = data::lines(files.write("lines", "ab\nabc\n"));
  auto message = [&](const data::Examples& examples) {
    return open_examples(examples).value().element(0).status().message();
  };
  CHECK(message(lines.batch(2)).find("differ in shape") != std::string::npos);
  CHECK(message(lines.padded_batch(2, {{{2}, 0}})) ==
        "an example of [3] is longer than [2], to which it is to be padded");
  auto padded = open_examples(lines.padded_batch(2, {{{4}, 9}})).value();
  CHECK(element_of(padded, 0).elements ==
        std::vector<std::int64_t>{1, 2, 9, 9, 1, 2, 3, 9});  // 0 is the end of a line
}

TEST_CASE("stages made of random words are refused or opened, and nothing else") {
  const auto names = words_of(
      "tensors digits text lines csv cifar10 idx tf_records fixed_records npy npz range text_lines "
      "whole_files "
      "labelled_files image_folder take skip shard batch bucket interleave padded_batch shuffle "
      "repeat map filter unbatch zip cache skip_errors parse_example decode_image nothing");
  const auto values = words_of(
      "0 1 2 3 0 1 2 3 -1 detect gzip list raw - stretch crop parallel u8 1e9 0.5 keep drop header "
      "i64 f32 string skip [2] [?] ? [] \"\" \",\" "
      "[9223372036854775807,2] 9223372036854775807 18446744073709551615");
  const Tensor bytes = Tensor::of<std::string>({1}, {std::string(16, '\0')});
  auto open = [](const std::string& path) -> Expected<DataFilePtr> {
    return memory_file(path, "1,2\n3,4\n");
  };
  const std::vector<ExampleFunctionPtr> functions = {
      std::make_shared<Mapped>(Signature{{DType::i64, PartialShape::scalar()}})};
  int opened = 0, described = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    std::vector<std::string> stages;
    if (random.below(4) > 0)
      stages.push_back(random.below(2) > 0 ? "tensors i64 [2]" : "tensors f32 [2,2]");
    for (std::uint64_t n = 1 + random.below(2); n > 0; --n) {
      std::string& text = stages.emplace_back(names[random.below(names.size())]);
      for (std::uint64_t k = random.below(5); k > 0; --k)
        text += " " + values[random.below(values.size())];
    }
    const auto signature = pipeline_signature(stages);
    described += signature.ok();
    const std::vector<std::string> files(random.below(4) == 0 ? 1 : 0, "file");
    StageOpening opening(open, files, bytes.span<std::string>().first(random.below(4) == 0 ? 0 : 1),
                         ExampleFunctions(functions).first(random.below(4) == 0 ? 1 : 0), 7);
    const auto stage = open_stages(stages, opening);
    opened += stage.ok();
    if (!signature.ok()) CHECK(stage.status().code() != Code::ok);
    for (const Status& status : {signature.status(), stage.status()})
      CHECK(status.code() != Code::internal);
  }
  CHECK(described > 100);
  CHECK(opened > 20);
}

TEST_CASE("the words of a stage are read back as they were") {
  for (const StageText& stage :
       {StageText{"csv", {"\t", "", "a b", "\"", "\\", std::string("\0\xff", 2)}},
        StageText{"take", {"5"}}, StageText{"plain", {}}}) {
    const StageText again = StageText::parse(stage.text()).value();
    CHECK(again.name == stage.name);
    CHECK(again.arguments == stage.arguments);
  }
  for (const char* wrong : {" ", "a ", "a  b", "\"\\x0\"", "\"\\q00\"", "a\x01", "\"a\"b"})
    CHECK_FALSE(StageText::parse(wrong).ok());
}
