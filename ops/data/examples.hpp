// Input pipelines of any source and any stages, as a client writes them.
//
//   auto [x, y] = data::text("book.txt", {.window = 64, .vocabulary = vocabulary})
//                     .shuffle(100'000).repeat().batch(32).prefetch(2).outputs(g);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/builder.hpp"
#include "ops/api/control.hpp"
#include "ops/data/source.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/vocabulary.hpp"

namespace troupe::data {

// What becomes of the last batch of a pass when it is not full.
enum class Remainder { keep, drop };

// How examples of different shapes become a batch: each component is filled up behind with its
// value, to its shape; dimensions that the shape does not know are as long as the batch's longest.
// A component that is not named is padded with 0 to its own shape.
using Paddings = std::vector<Padding>;

namespace detail {
// f of as many values as it takes, `one(how many, which)` each; of all where it takes a vector.
template <class F, class One>
auto called(F& f, const std::vector<Output>& all, One one) {
  if constexpr (std::is_invocable_v<F&, const std::vector<Output>&>)
    return f(all);
  else if constexpr (std::is_invocable_v<F&, Output>)
    return f(one(1, 0));
  else if constexpr (std::is_invocable_v<F&, Output, Output>)
    return f(one(2, 0), one(2, 1));
  else
    return f(one(3, 0), one(3, 1), one(3, 2));
}

template <class T>
struct ComponentsIn : std::integral_constant<std::size_t, 1> {};  // an Output, or what becomes one
template <class T>
struct ComponentsIn<std::vector<T>> : std::integral_constant<std::size_t, 0> {};
template <class A, class B>
struct ComponentsIn<std::pair<A, B>> : std::integral_constant<std::size_t, 2> {};
template <class... T>
struct ComponentsIn<std::tuple<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <class T, std::size_t N>
struct ComponentsIn<std::array<T, N>> : std::integral_constant<std::size_t, N> {};

// How many values f returns; 0 where its type does not say.
template <class F>
constexpr std::size_t components_of() {
  using One = Output (*)(std::size_t, std::size_t);
  return ComponentsIn<std::decay_t<decltype(called(std::declval<std::remove_reference_t<F>&>(),
                                                   std::declval<const std::vector<Output>&>(),
                                                   std::declval<One>()))>>::value;
}
}  // namespace detail

template <std::size_t N>
class FixedExamples;

// The components of an element. How many there are is known when the program runs, so that names
// cannot be bound to them.
template <class T>
struct ComponentList : std::vector<T> {
  using std::vector<T>::vector;
  ComponentList(std::vector<T> all) : std::vector<T>(std::move(all)) {}
};

// A source and stages over it, in the order in which they are called; each call returns the
// description with one stage more. Each stage sees what the one before it gives: a shuffle before a
// batch shuffles examples, one after it batches; a repeat before a batch lets batches cross the end
// of a pass. Nothing is read before a run, and what is read is read where the pipeline runs.
//
// Element e is a function of the stages, the files and e alone. How many a job has taken is part of
// its state, and so a resumed job goes on with the next one. Sources in tensors, plain text,
// CIFAR-10 and IDX files find it at once; over a shuffle, buckets, CSV, lines and text that gzip
// has packed it takes a walk over what is before it.
//
// outputs() throws Error for arguments that are out of range, and for functions of another graph.
class Examples {
 public:
  // The first ones only; all but the first ones.
  Examples take(std::int64_t count) const;
  Examples skip(std::int64_t count) const;
  // Every `shards`th one from `index` on: what one of several jobs reads.
  Examples shard(std::int64_t shards, std::int64_t index) const;
  // In another order in each pass, drawn from a window of that many. It holds as many: of a source
  // that is read at any place 40 bytes each, of others the examples. The order is the seed's; the
  // graph's unless given.
  Examples shuffle(std::int64_t window, std::optional<std::uint64_t> seed = {}) const;
  // That many passes; -1: for ever.
  Examples repeat(std::int64_t passes = -1) const;
  // What a function of the graph makes of each example, or of each batch behind a batch: it takes
  // the components and returns those of the new example, of other dtypes and shapes if it likes. It
  // runs on the CPU of the process that reads the dataset, one example after another, ahead of the
  // step where elements are made ahead, and may hold branches, loops and calls. What it draws at
  // random is a function of the dataset's name, of the stage, of the pass and of the example's
  // place in it: the same whoever asks, and another one in each pass. A shuffle behind it holds
  // what it has made, one before it places in the source.
  //
  // Throws Error when it takes other components, or uses anything but them: values around it,
  // variables, queues. outputs() is then for that graph alone.
  Examples map(const Function& f, Site site = Site::here()) const;
  //   .map(g, [](Output picture, Output label) { return std::pair{picture / 255.f, label}; })
  // Where the type of what it returns says how many components there are, so do the examples'.
  template <class F>
  auto map(GraphBuilder& g, F&& f, Site site = Site::here()) const {
    constexpr std::size_t kComponents = detail::components_of<F>();
    Examples mapped = map_by(
        g,
        [&](const std::vector<Output>& values) {
          return troupe::detail::results_of(called_with(f, values, site));
        },
        site);
    if constexpr (kComponents == 0)
      return mapped;
    else
      return FixedExamples<kComponents>(std::move(mapped));
  }
  // [size, ...]; invalid_argument while running when shapes differ. Unless told, a last batch that
  // is short is kept; where passes go on without end, in a repeat() of no number behind it, it is
  // left out, so that all batches have one shape.
  Examples batch(std::int64_t size, std::optional<Remainder> remainder = {}) const;
  Examples padded_batch(std::int64_t size, const Paddings& paddings = {},
                        std::optional<Remainder> remainder = {}) const;
  // Padded batches of examples of like length, which is dimension 0 of `component`: of lengths
  // below boundaries[0] in batches of sizes[0], ..., from the last boundary on in batches of the
  // last size. The batch that is full first comes first.
  Examples bucket_by_length(std::vector<std::int64_t> boundaries, std::vector<std::int64_t> sizes,
                            const Paddings& paddings = {}, Remainder remainder = Remainder::keep,
                            std::int64_t component = 0) const;
  // Elements made ahead of their use.
  Examples prefetch(std::int64_t elements) const;

  // dtypes and shapes of what a run gets; invalid_argument for arguments that are out of range.
  Expected<Signature> signature() const;

  // The components of one element a run: the next of the dataset.
  ComponentList<Output> outputs(GraphBuilder& g, std::string_view name = "data",
                                Site site = Site::here()) const;
  // auto [x, y] = examples.outputs<2>(g); invalid_argument, thrown, when there are not so many.
  template <std::size_t N>
  std::array<Output, N> outputs(GraphBuilder& g, std::string_view name = "data",
                                Site site = Site::here()) const {
    std::array<Output, N> out;
    const std::vector<Output> all = checked_outputs(N, g, name, site);
    for (std::size_t i = 0; i < N; ++i) out[i] = all[i];
    return out;
  }

  // A source as its file in ops/data/sources describes it; what it takes files from.
  static Examples of(std::string stage, std::vector<std::string> files,
                     std::vector<Tensor> tensors = {});

 private:
  friend Examples interleave(const std::vector<Examples>& inputs);
  // As many of the values as it takes; a vector: all of them.
  template <class F>
  static auto called_with(F& f, const std::vector<Output>& v, const Site& site) {
    return detail::called(
        f, v, [&](std::size_t wanted, std::size_t i) { return one_of(v, wanted, i, site); });
  }
  static Output one_of(const std::vector<Output>& values, std::size_t wanted, std::size_t i,
                       const Site& site);
  Examples map_by(GraphBuilder& g,
                  const std::function<std::vector<Output>(const std::vector<Output>&)>& f,
                  Site site) const;
  Examples with(std::string stage) const;
  std::vector<Output> checked_outputs(std::size_t n, GraphBuilder& g, std::string_view name,
                                      Site site) const;
  std::vector<std::string> stages_with(std::uint64_t seed) const;

  std::vector<std::string> stages_, files_;
  std::vector<Tensor> tensors_;
  struct Mapped {
    std::string function;
    const GraphBuilder* graph;  // to compare: it may be gone
  };
  std::vector<Mapped> functions_;
  std::int64_t prefetch_ = 0;
};

// Examples whose source says how many components they have: auto [x, y] = digits().outputs(g).
template <std::size_t N>
class FixedExamples : public Examples {
 public:
  explicit FixedExamples(Examples examples) : Examples(std::move(examples)) {}

  FixedExamples take(std::int64_t count) const { return same(Examples::take(count)); }
  FixedExamples skip(std::int64_t count) const { return same(Examples::skip(count)); }
  FixedExamples shard(std::int64_t shards, std::int64_t index) const {
    return same(Examples::shard(shards, index));
  }
  FixedExamples shuffle(std::int64_t window, std::optional<std::uint64_t> seed = {}) const {
    return same(Examples::shuffle(window, seed));
  }
  FixedExamples repeat(std::int64_t passes = -1) const { return same(Examples::repeat(passes)); }
  FixedExamples batch(std::int64_t size, std::optional<Remainder> remainder = {}) const {
    return same(Examples::batch(size, remainder));
  }
  FixedExamples padded_batch(std::int64_t size, const Paddings& paddings = {},
                             std::optional<Remainder> remainder = {}) const {
    return same(Examples::padded_batch(size, paddings, remainder));
  }
  FixedExamples bucket_by_length(std::vector<std::int64_t> boundaries,
                                 std::vector<std::int64_t> sizes, const Paddings& paddings = {},
                                 Remainder remainder = Remainder::keep,
                                 std::int64_t component = 0) const {
    return same(Examples::bucket_by_length(std::move(boundaries), std::move(sizes), paddings,
                                           remainder, component));
  }
  FixedExamples prefetch(std::int64_t elements) const { return same(Examples::prefetch(elements)); }

  template <std::size_t M = N>
  std::array<Output, M> outputs(GraphBuilder& g, std::string_view name = "data",
                                Site site = Site::here()) const {
    static_assert(M == N, "elements of this dataset have another number of components");
    return Examples::outputs<N>(g, name, std::move(site));
  }

 private:
  static FixedExamples same(Examples examples) { return FixedExamples(std::move(examples)); }
};

// An example of each in turn; one that has ended loses its turn. Files that are read side by side,
// or sources that are mixed.
Examples interleave(const std::vector<Examples>& inputs);

// Rows of tensors: component c of example i is tensors[c][i].
Examples tensors(const std::vector<Tensor>& tensors);

struct TextOptions {
  std::int64_t window = 64;  // characters of an example
  std::int64_t stride = 0;   // between the beginnings of two windows; 0: the window's length
  // The part of the file that is read, as fractions of its length: {.to = 0.9} to train,
  // {.from = 0.9} to test. Windows do not cross its ends.
  double from = 0, to = 1;
  // Unless given, that of the whole file, which is then read when the dataset is opened.
  Vocabulary vocabulary = {};
};
// Windows of a text file: the numbers of characters, i64 [window], and those of the characters that
// follow each, i64 [window]. data_loss while running for a character that the vocabulary lacks.
FixedExamples<2> text(std::string_view path, const TextOptions& options = {});

// Windows of a text of so many characters that a program draws (ops/data/tales.hpp), in the form of
// text(). Their vocabulary is that of all of them, whatever the options say.
FixedExamples<2> tales(std::int64_t characters = 500'000, const TextOptions& options = {},
                       std::uint64_t seed = 1);

// The lines of a text file: numbers of characters, i64 [length]. For padded batches and buckets.
FixedExamples<1> lines(std::string_view path, const Vocabulary& vocabulary = {});

struct CsvColumn {
  DType dtype = DType::f32;  // f32 f64 i32 i64 u8 bool string
  std::int64_t cells = 1;    // so many columns of the file are one component, [cells]
  std::optional<std::string> missing = {};  // what an empty cell stands for; none: it is an error
  bool skip = false;                        // the file's columns are passed over
};
struct CsvOptions {
  char delimiter = ',';
  bool header = true;  // the first record names the columns
};
// Records of a CSV file (RFC 4180), a component [] for each column, or [cells] for several of them.
// data_loss, with file, line and column, for a record of more or fewer cells and for a cell that is
// no value of its dtype.
Examples csv(std::string_view path, const std::vector<CsvColumn>& columns,
             const CsvOptions& options = {});

}  // namespace troupe::data

template <class T>
struct std::tuple_size<troupe::data::ComponentList<T>> {
  static_assert(sizeof(T) == 0,
                "say how many components elements have: auto [x, y] = examples.outputs<2>(g)");
};
