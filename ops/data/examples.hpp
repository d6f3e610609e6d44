// Input pipelines: a source of examples followed by stages.
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
#include "ops/data/decoding.hpp"
#include "ops/data/source.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/vocabulary.hpp"

namespace troupe::data {

// Whether the last batch of a pass is kept or dropped if it is not full.
enum class Remainder { keep, drop };

// How to pad examples of different shapes to a batch: each component is padded at the end with a
// value, to a shape; an unknown dimension of that shape becomes as long as the longest of the
// batch. Components without an entry are padded with 0.
using Paddings = std::vector<Padding>;

// Examples that a map computes at once, each in a thread. Their order and values are the same with
// any number.
struct MapOptions {
  std::int64_t parallel = 1;
};

namespace detail {
// f of as many values as it takes, N or more, `one(how many, which)` each; of all where it takes a
// vector.
template <std::size_t N = 1, class F, class One>
auto called(F& f, const std::vector<Output>& all, One one) {
  constexpr auto kEach = std::make_index_sequence<N>();
  static_assert(N <= troupe::detail::kMostByName,
                "the function takes an Output for each component or a vector of them");
  if constexpr (std::is_invocable_v<F&, const std::vector<Output>&>) {
    return f(all);
  } else if constexpr (troupe::detail::takes<F>(kEach)) {
    const auto apply = [&]<std::size_t... I>(std::index_sequence<I...>) { return f(one(N, I)...); };
    return apply(kEach);
  } else if constexpr (N <= troupe::detail::kMostByName) {
    return called<N + 1>(f, all, one);
  }
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

// The components of an element when their number is known only at run time. Structured bindings
// need outputs<N>().
template <class T>
struct ComponentList : std::vector<T> {
  using std::vector<T>::vector;
  ComponentList(std::vector<T> all) : std::vector<T>(std::move(all)) {}
};

// A source followed by stages, in the order of the calls; each call returns a new description with
// one more stage. The order matters: a shuffle before a batch shuffles examples, after it batches;
// a repeat before a batch lets batches span the end of a pass. Nothing is read before a run. Files
// are read in the process in which the pipeline runs.
//
// Element e depends only on the stages, the files, the seed and e. The number of elements taken is
// part of the job's state, so a resumed job continues with the next. Sources with a known number of
// examples give random access. CSV, lines, TFRecords and gzipped text must be read up to the
// element, as must a shuffle, filter, cache, buckets or skip_errors.
//
// outputs() throws Error if an argument is out of range, or a function belongs to another graph.
class Examples {
 public:
  // The first `count` examples; all but the first `count`.
  Examples take(std::int64_t count) const;
  Examples skip(std::int64_t count) const;
  // Every `shards`-th example, starting with example `index`: the share of one of several jobs.
  Examples shard(std::int64_t shards, std::int64_t index) const;
  // A new random order in each pass, drawn from a sliding window of `window` examples, which are
  // kept in memory: 72 bytes each for a source with random access, otherwise the whole example.
  // Default seed: the graph's.
  Examples shuffle(std::int64_t window, std::optional<std::uint64_t> seed = {}) const;
  // That many passes; -1: endless.
  Examples repeat(std::int64_t passes = -1) const;
  // Applies a graph function to each example (after batch(): to each batch). It takes the
  // components and returns those of the new example, whose number, dtypes and shapes may differ. It
  // runs on the CPU of the process that reads the dataset, one example after another, ahead of the
  // step if there is a prefetch(). It may contain branches, loops and calls. Its random numbers
  // depend on the dataset's name, the stage, the pass and the example's position: they are
  // reproducible, and differ between passes. A shuffle after it holds its results; a shuffle before
  // it only positions.
  //
  // Throws Error if the function takes other components, or uses anything but its arguments:
  // outside values, variables, queues. The dataset can then be used in the function's graph only.
  Examples map(const Function& f, Site site = Site::here()) const {
    return map(f, MapOptions{}, std::move(site));
  }
  Examples map(const Function& f, const MapOptions& options, Site site = Site::here()) const;
  //   .map(g, [](Output picture, Output label) { return std::pair{picture / 255.f, label}; })
  // If the lambda's return type has a fixed number of components, so has the result.
  template <class F>
  auto map(GraphBuilder& g, F&& f, Site site = Site::here()) const {
    return map(g, std::forward<F>(f), MapOptions{}, std::move(site));
  }
  template <class F>
  auto map(GraphBuilder& g, F&& f, const MapOptions& options, Site site = Site::here()) const {
    constexpr std::size_t kComponents = detail::components_of<F>();
    Examples mapped = map_by(
        g,
        [&](const std::vector<Output>& values) {
          return troupe::detail::results_of(called_with(f, values, site));
        },
        options, site);
    if constexpr (kComponents == 0)
      return mapped;
    else
      return FixedExamples<kComponents>(std::move(mapped));
  }
  // The examples for which a graph function of the components returns true, bool []. What is said
  // of the function of a map holds for it, too.
  Examples filter(const Function& f, Site site = Site::here()) const;
  //   .filter(g, [](Output picture, Output label) { return label < 5; })
  template <class F>
  Examples filter(GraphBuilder& g, F&& f, Site site = Site::here()) const {
    return filter_by(
        g, [&](const std::vector<Output>& values) { return called_with(f, values, site); }, site);
  }
  // The rows of each example, one after the other: all components have as many. With map() before
  // it an example becomes any number of them, which is flat_map().
  Examples unbatch() const;
  template <class F>
  Examples flat_map(GraphBuilder& g, F&& f, Site site = Site::here()) const {
    return Examples(map(g, std::forward<F>(f), std::move(site))).unbatch();
  }
  // Keeps the examples of the first pass in memory: later passes are the same again, and read
  // nothing. More than `most_bytes` of them fail the run with resource_exhausted.
  Examples cache(std::int64_t most_bytes = std::int64_t{1} << 30) const;
  // Leaves out examples that cannot be read, parsed or computed (data_loss, invalid_argument), up
  // to `most` in each pass; each is told in a warning. One more fails the run. Not of batches: put
  // it before them.
  Examples skip_errors(std::int64_t most) const;
  // Component `component`, a string, is a tf.Example record; the features are put in its place. A
  // record that is malformed, or lacks a feature without a default, fails the run with data_loss,
  // as does one with a feature of another kind or length; the error names the feature, and the
  // record's file, number and byte.
  Examples parse_example(const std::vector<Feature>& features, std::int64_t component = 0) const;
  // Component `component`, a string, is a PNG or JPEG file; the picture is put in its place. One
  // that is damaged fails the run with data_loss.
  Examples decode_image(const ImageOptions& options = {}, std::int64_t component = 0,
                        const MapOptions& map = {}) const;
  // Batches [size, ...]. Examples of different shapes fail the run with invalid_argument. By
  // default a short last batch is kept; if an endless repeat() follows, it is dropped, so that all
  // batches have one shape.
  Examples batch(std::int64_t size, std::optional<Remainder> remainder = {}) const;
  Examples padded_batch(std::int64_t size, const Paddings& paddings = {},
                        std::optional<Remainder> remainder = {}) const;
  // Padded batches of examples of similar length, which is dimension 0 of `component`. Lengths
  // below boundaries[0] form batches of sizes[0], and so on; lengths from the last boundary on form
  // batches of the last size. Batches come in the order in which they fill up.
  Examples bucket_by_length(std::vector<std::int64_t> boundaries, std::vector<std::int64_t> sizes,
                            const Paddings& paddings = {}, Remainder remainder = Remainder::keep,
                            std::int64_t component = 0) const;
  // Makes up to `elements` elements ahead of the run that takes them.
  Examples prefetch(std::int64_t elements) const;

  // dtypes and shapes of an element; invalid_argument if an argument is out of range.
  Expected<Signature> signature() const;

  // Adds the dataset to the graph. Each run takes its next element; returns the components.
  ComponentList<Output> outputs(GraphBuilder& g, std::string_view name = "data",
                                Site site = Site::here()) const;
  // auto [x, y] = examples.outputs<2>(g). Throws Error if there is another number of components.
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
  // A stage of several inputs over them.
  static Examples over(const std::vector<Examples>& inputs, std::string stage);

 private:
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
                  const MapOptions& options, Site site) const;
  Examples filter_by(GraphBuilder& g, const std::function<Output(const std::vector<Output>&)>& f,
                     Site site) const;
  Examples calling(const Function& f, std::string stage, const Site& site) const;
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
  template <class F>
  FixedExamples filter(GraphBuilder& g, F&& f, Site site = Site::here()) const {
    return same(Examples::filter(g, std::forward<F>(f), std::move(site)));
  }
  FixedExamples filter(const Function& f, Site site = Site::here()) const {
    return same(Examples::filter(f, std::move(site)));
  }
  FixedExamples unbatch() const { return same(Examples::unbatch()); }
  FixedExamples cache(std::int64_t most_bytes = std::int64_t{1} << 30) const {
    return same(Examples::cache(most_bytes));
  }
  FixedExamples skip_errors(std::int64_t most) const { return same(Examples::skip_errors(most)); }
  FixedExamples decode_image(const ImageOptions& options = {}, std::int64_t component = 0,
                             const MapOptions& map = {}) const {
    return same(Examples::decode_image(options, component, map));
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

struct InterleaveOptions {
  // Datasets that are read in turn; where one has ended, the next of the list takes its place. 0:
  // all of them.
  std::int64_t at_once = 0;
  std::int64_t block = 1;  // examples of each, until it is the next one's turn
};
// One example of each dataset in turn; a dataset that has ended is skipped. For reading files in
// parallel, or mixing sources.
Examples interleave(const std::vector<Examples>& inputs, const InterleaveOptions& options = {});
// One dataset after the other.
Examples concatenate(const std::vector<Examples>& inputs);
// An example of each dataset side by side: the components of all. As long as the shortest.
Examples zip(const std::vector<Examples>& inputs);

// Rows of tensors: component c of example i is tensors[c][i].
Examples tensors(const std::vector<Tensor>& tensors);

struct TextOptions {
  std::int64_t window = 64;  // characters per example
  std::int64_t stride = 0;   // distance between the starts of two windows; 0: the window's length
  // The part of the file to read, as fractions of its length: {.to = 0.9} for training,
  // {.from = 0.9} for testing. Windows stay inside this part.
  double from = 0, to = 1;
  // Default: the vocabulary of the whole file, which is then read when the dataset is opened.
  Vocabulary vocabulary = {};
};
// Windows of a text file: the numbers of the characters, i64 [window], and of the character after
// each, i64 [window]. A character that is not in the vocabulary fails the run with data_loss.
FixedExamples<2> text(std::string_view path, const TextOptions& options = {});

// Like text(), for that many characters of generated text (ops/data/tales.hpp). The vocabulary of
// the options is ignored.
FixedExamples<2> tales(std::int64_t characters = 500'000, const TextOptions& options = {},
                       std::uint64_t seed = 1);

// The lines of a text file: the numbers of their characters, i64 [length]. Use with padded_batch()
// or bucket_by_length().
FixedExamples<1> lines(std::string_view path, const Vocabulary& vocabulary = {});

struct CsvColumn {
  DType dtype = DType::f32;                 // f32 f64 i32 i64 u8 bool string
  std::int64_t cells = 1;                   // columns of the file that form this component, [cells]
  std::optional<std::string> missing = {};  // value of empty cells; without it they are errors
  bool skip = false;                        // ignore these columns
};
struct CsvOptions {
  char delimiter = ',';
  bool header = true;  // the first record names the columns
};
// Records of a CSV file (RFC 4180): one component per CsvColumn, a scalar or [cells]. A record with
// another number of cells, or a cell that does not parse as its dtype, fails the run with
// data_loss, with file, line and column.
Examples csv(std::string_view path, const std::vector<CsvColumn>& columns,
             const CsvOptions& options = {});

}  // namespace troupe::data

template <class T>
struct std::tuple_size<troupe::data::ComponentList<T>> {
  static_assert(sizeof(T) == 0,
                "give the number of components: auto [x, y] = examples.outputs<2>(g)");
};
