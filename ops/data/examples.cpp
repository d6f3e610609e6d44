#include "ops/data/examples.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"
#include "ops/data/images/picture.hpp"
#include "ops/data/sources/tensors.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe::data {

namespace {

// Stands for the graph's seed until outputs() knows it.
constexpr char kGraphSeed[] = "graph";

std::string number(std::int64_t value) { return std::to_string(value); }
// Stands for what nobody has said of a batch, until it is known whether passes go on without end.
constexpr char kUntold[] = "untold";

const char* word(std::optional<Remainder> remainder) {
  return !remainder ? kUntold : *remainder == Remainder::drop ? "drop" : "keep";
}

// Of a batch that is not told what becomes of a short one.
bool is_untold(const StageText& stage) {
  return stage.name.ends_with("batch") && stage.arguments.size() > 1 &&
         stage.arguments[1] == kUntold;
}

// A batch before passes without end leaves short ones out. Others stay untold until `all`: what
// stands over several datasets may yet be repeated.
void tell_remainders(std::vector<std::string>& stages, bool all) {
  bool endless = false, beside = false;
  for (auto text = stages.rbegin(); text != stages.rend(); ++text) {
    // One of several datasets was told of its own passes, which are not those of the others.
    if (text->starts_with("interleave ") || text->starts_with("zip ")) beside = true;
    if (!beside && *text == "repeat -1") endless = true;
    auto stage = StageText::parse(*text);
    if (!stage.ok() || !is_untold(*stage) || !(all || endless)) continue;
    stage->arguments[1] = word(endless ? Remainder::drop : Remainder::keep);
    *text = stage->text();
  }
}

std::string shape_word(const PartialShape& shape) {
  return shape.known_rank() ? shape.text() : "?";
}

std::string stage(const char* name, std::vector<std::string> arguments) {
  return StageText{name, std::move(arguments)}.text();
}

std::vector<std::string> windows(const TextOptions& options) {
  return {number(options.window), number(options.stride == 0 ? options.window : options.stride),
          fmt::format("{}", options.from), fmt::format("{}", options.to)};
}

}  // namespace

Examples Examples::of(std::string source, std::vector<std::string> files,
                      std::vector<Tensor> tensors) {
  Examples examples;
  examples.stages_ = {std::move(source)};
  examples.files_ = std::move(files);
  examples.tensors_ = std::move(tensors);
  return examples;
}

Examples Examples::with(std::string stage) const {
  Examples more = *this;
  more.stages_.push_back(std::move(stage));
  return more;
}

Examples Examples::take(std::int64_t count) const { return with(stage("take", {number(count)})); }
Examples Examples::skip(std::int64_t count) const { return with(stage("skip", {number(count)})); }
Examples Examples::shard(std::int64_t shards, std::int64_t index) const {
  return with(stage("shard", {number(shards), number(index)}));
}
Examples Examples::shuffle(std::int64_t window, std::optional<std::uint64_t> seed) const {
  return with(stage("shuffle", {number(window), seed ? std::to_string(*seed) : kGraphSeed}));
}
Examples Examples::repeat(std::int64_t passes) const {
  return with(stage("repeat", {number(passes)}));
}
Examples Examples::batch(std::int64_t size, std::optional<Remainder> remainder) const {
  return with(stage("batch", {number(size), word(remainder)}));
}

namespace {

Status bad_function(const std::string& stage, const std::string& name, const std::string& why) {
  return invalid_argument(stage + ": function '" + name + "' " + why);
}

// It is called where there is no graph.
Status check_alone(const std::string& stage, const BodyState& body, std::size_t results) {
  if (results == 0) return bad_function(stage, body.function, "returns nothing");
  if (!body.captured.empty())
    return bad_function(stage, body.function,
                        "uses '" + Op(body.captured[0]).name() +
                            "' of the graph around it, and is given elements alone");
  if (!body.waits.empty())
    return bad_function(stage, body.function,
                        "comes after '" + body.waits[0].name() + "' of the graph around it");
  return ok_status();
}

}  // namespace

// The stage, whose first word is its name, on what the function is to be called with.
Examples Examples::calling(const Function& f, std::string stage, const Site& site) const {
  const std::string name = stage.substr(0, stage.find(' '));
  const FunctionRecord* record = f.graph().function(f.name());
  if (!record || !record->body->body()->finished)
    throw Error(bad_function(name, f.name(), "is not made yet").at(site));
  if (Status s = check_alone(name, *record->body->body(), record->results.size()); !s.ok())
    throw Error(s.at(site));
  const FunctionDef& def = f.graph().root().def().functions[record->position];
  const auto given = signature();
  if (!given.ok()) throw Error(given.status().in("describing a dataset").at(site));
  Signature takes;
  for (NodeId id : def.arguments)
    takes.push_back({def.nodes[id].out_types[0], def.nodes[id].out_shapes[0]});
  if (!may_fit(takes, *given))
    throw Error(bad_function(name, f.name(),
                             "takes " + signature_text(takes) + ", and examples are " +
                                 signature_text(*given))
                    .at(site));
  Examples called = with(std::move(stage));
  called.functions_.push_back({f.name(), &f.graph().root()});
  // Told by the line that adds the stage, rather than by that which asks for outputs.
  if (const auto made = called.signature(); !made.ok()) throw Error(made.status().at(site));
  return called;
}

namespace {

// The dtypes and shapes of what a function returns, as words; none of one that is not made yet.
std::vector<std::string> result_words(const Function& f) {
  std::vector<std::string> words;
  const FunctionRecord* record = f.graph().function(f.name());
  if (!record || !record->body->body()->finished) return words;
  const FunctionDef& def = f.graph().root().def().functions[record->position];
  for (std::size_t i = 0; i < def.results.size(); ++i) {
    words.emplace_back(dtype_name(def.result_types[i]));
    words.push_back(shape_word(def.result_shapes[i]));
  }
  return words;
}

}  // namespace

Examples Examples::map(const Function& f, const MapOptions& options, Site site) const {
  std::vector<std::string> words = result_words(f);
  if (options.parallel != 1) words.insert(words.begin(), {"parallel", number(options.parallel)});
  return calling(f, stage("map", std::move(words)), site);
}

Examples Examples::filter(const Function& f, Site site) const {
  const std::vector<std::string> words = result_words(f);
  if (!words.empty() &&
      (words.size() != 2 || words[0] != "bool" || (words[1] != "[]" && words[1] != "?")))
    throw Error(bad_function("filter", f.name(), "returns no bool []").at(site));
  return calling(f, "filter", site);
}

Output Examples::one_of(const std::vector<Output>& values, std::size_t wanted, std::size_t i,
                        const Site& site) {
  if (values.size() == wanted) return values[i];
  throw Error(
      invalid_argument(fmt::format("map: the function takes {} values, and examples have {}",
                                   wanted, values.size()))
          .at(site));
}

namespace {

// A function of the graph whose arguments are the components of an example.
template <class F>
Function function_of_elements(GraphBuilder& g, const char* stage,
                              const Expected<Signature>& elements, F f, const Site& site) {
  if (!elements.ok()) throw Error(elements.status().in("describing a dataset").at(site));
  Body body(g, stage, site);
  std::vector<Output> values;
  for (const Component& component : *elements)
    values.push_back(value_or_throw(body.argument({component.dtype, component.shape}, "element")));
  throw_if_error(body.returns(f(values)));
  if (Status s = check_alone(stage, *body.graph().body(), body.results().size()); !s.ok())
    throw Error(s.at(site));
  value_or_throw(body.finish());
  return Function(g.root(), body.name());
}

}  // namespace

Examples Examples::map_by(GraphBuilder& g,
                          const std::function<std::vector<Output>(const std::vector<Output>&)>& f,
                          const MapOptions& options, Site site) const {
  const Function made = function_of_elements(g, "map", signature(), f, site);
  return map(made, options, std::move(site));
}

Examples Examples::filter_by(GraphBuilder& g,
                             const std::function<Output(const std::vector<Output>&)>& f,
                             Site site) const {
  const Function made = function_of_elements(
      g, "filter", signature(),
      [&](const std::vector<Output>& values) { return std::vector{f(values)}; }, site);
  return filter(made, std::move(site));
}

Examples Examples::unbatch() const { return with("unbatch"); }
Examples Examples::cache(std::int64_t most_bytes) const {
  return with(stage("cache", {number(most_bytes)}));
}
Examples Examples::skip_errors(std::int64_t most) const {
  return with(stage("skip_errors", {number(most)}));
}

Examples Examples::parse_example(const std::vector<Feature>& features,
                                 std::int64_t component) const {
  std::vector<std::string> arguments = {number(component)};
  for (const Feature& feature : features) {
    const Tensor& missing = feature.missing;
    arguments.push_back(feature.name);
    arguments.emplace_back(feature.dtype == DType::invalid ? "invalid" : dtype_name(feature.dtype));
    arguments.push_back(shape_word(feature.shape));
    arguments.emplace_back(feature.raw ? "raw" : "list");
    arguments.emplace_back(missing.defined() ? dtype_name(missing.dtype()) : "-");
    arguments.emplace_back(missing.defined() ? missing.shape().text() : "-");
  }
  Examples parsed = with(stage("parse_example", std::move(arguments)));
  for (const Feature& feature : features)
    if (feature.missing.defined()) parsed.tensors_.push_back(feature.missing);
  return parsed;
}

Examples Examples::decode_image(const ImageOptions& options, std::int64_t component,
                                const MapOptions& map) const {
  std::vector<std::string> arguments = image_words(options);
  arguments.insert(arguments.begin(), {number(component), number(map.parallel)});
  return with(stage("decode_image", std::move(arguments)));
}

namespace {

// A shape and a value for each component; those that are not given are the components' own.
void append_paddings(std::vector<std::string>& arguments, const Paddings& paddings,
                     const Expected<Signature>& input) {
  // What is wrong before it shows when outputs() looks at the whole.
  const std::size_t components = input.ok() ? input->size() : 0;
  for (std::size_t c = 0; c < std::max(components, paddings.size()); ++c) {
    const Padding padding = c < paddings.size() ? paddings[c] : Padding{};
    arguments.push_back(shape_word(padding.shape));
    arguments.push_back(fmt::format("{}", padding.value));
  }
}

}  // namespace

Examples Examples::padded_batch(std::int64_t size, const Paddings& paddings,
                                std::optional<Remainder> remainder) const {
  std::vector<std::string> arguments = {number(size), word(remainder)};
  append_paddings(arguments, paddings, signature());
  return with(stage("padded_batch", std::move(arguments)));
}

Examples Examples::bucket_by_length(std::vector<std::int64_t> boundaries,
                                    std::vector<std::int64_t> sizes, const Paddings& paddings,
                                    Remainder remainder, std::int64_t component) const {
  std::vector<std::string> arguments = {number(component), word(remainder),
                                        std::to_string(boundaries.size())};
  for (std::int64_t boundary : boundaries) arguments.push_back(number(boundary));
  arguments.push_back(std::to_string(sizes.size()));
  for (std::int64_t size : sizes) arguments.push_back(number(size));
  append_paddings(arguments, paddings, signature());
  return with(stage("bucket", std::move(arguments)));
}

Examples Examples::prefetch(std::int64_t elements) const {
  Examples more = *this;
  more.prefetch_ = elements;
  return more;
}

// The first shuffle has the seed itself; others theirs, so that no two draw alike.
std::vector<std::string> Examples::stages_with(std::uint64_t seed) const {
  std::vector<std::string> stages = stages_;
  std::uint64_t shuffles = 0;
  for (std::string& text : stages) {
    if (!text.starts_with("shuffle ") || !text.ends_with(kGraphSeed)) continue;
    text.resize(text.size() - (sizeof kGraphSeed - 1));
    text += std::to_string(shuffles == 0 ? seed : hash_combine(seed, shuffles));
    ++shuffles;
  }
  tell_remainders(stages, true);
  return stages;
}

Expected<Signature> Examples::signature() const { return pipeline_signature(stages_with(0)); }

ComponentList<Output> Examples::outputs(GraphBuilder& g, std::string_view name, Site site) const {
  const std::vector<std::string> stages = stages_with(g.def().seed);
  auto elements = pipeline_signature(stages);
  if (!elements.ok()) throw Error(elements.status().in("describing a dataset").at(site));
  std::vector<std::string> functions;
  for (const Mapped& f : functions_) {
    if (f.graph != &g.root() || !g.function(f.function))
      throw Error(invalid_argument("function '" + f.function + "' of a stage is of another graph")
                      .in("describing a dataset")
                      .at(site));
    functions.push_back(f.function);
  }
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  for (const Component& component : *elements) {
    types.push_back(component.dtype);
    shapes.push_back(component.shape);
  }
  Tensor bytes = value_or_throw(Tensor::make(DType::string, Shape{std::int64_t(tensors_.size())}));
  std::transform(tensors_.begin(), tensors_.end(), bytes.mutable_data<std::string>(), tensor_bytes);
  const Op dataset = g.add(NodeSpec{.op = "DataPipeline",
                                    .attrs = {{"stages", stages},
                                              {"files", files_},
                                              {"tensors", bytes},
                                              {"functions", functions},
                                              {"prefetch", prefetch_}},
                                    .name = std::string(name),
                                    .site = site});
  const Op next = g.add(NodeSpec{.op = "NextElement",
                                 .inputs = {dataset.output()},
                                 .attrs = {{"types", types}, {"shapes", shapes}},
                                 .name = std::string(name) + "_next",
                                 .site = site});
  return next.outputs();
}

std::vector<Output> Examples::checked_outputs(std::size_t n, GraphBuilder& g, std::string_view name,
                                              Site site) const {
  const auto elements = signature();
  if (elements.ok() && elements->size() != n)
    throw Error(invalid_argument(fmt::format("outputs<{}>: elements have {} components: {}", n,
                                             elements->size(), signature_text(*elements)))
                    .at(site));
  return outputs(g, name, site);
}

Examples Examples::over(const std::vector<Examples>& inputs, std::string stage) {
  Examples all;
  for (const Examples& input : inputs) {
    std::vector<std::string> stages = input.stages_;
    tell_remainders(stages, false);
    all.stages_.insert(all.stages_.end(), stages.begin(), stages.end());
    all.files_.insert(all.files_.end(), input.files_.begin(), input.files_.end());
    all.tensors_.insert(all.tensors_.end(), input.tensors_.begin(), input.tensors_.end());
    all.functions_.insert(all.functions_.end(), input.functions_.begin(), input.functions_.end());
  }
  return all.with(std::move(stage));
}

Examples interleave(const std::vector<Examples>& inputs, const InterleaveOptions& options) {
  std::vector<std::string> words = {std::to_string(inputs.size())};
  if (options.at_once != 0 || options.block != 1)
    words.insert(words.end(), {number(options.at_once), number(options.block)});
  return Examples::over(inputs, stage("interleave", std::move(words)));
}

Examples concatenate(const std::vector<Examples>& inputs) {
  return interleave(inputs, {.at_once = 1});
}

Examples zip(const std::vector<Examples>& inputs) {
  return Examples::over(inputs, stage("zip", {std::to_string(inputs.size())}));
}

Examples tensors(const std::vector<Tensor>& tensors) {
  std::vector<std::string> arguments;
  for (const Tensor& tensor : tensors) {
    arguments.emplace_back(dtype_name(tensor.dtype()));
    arguments.push_back(tensor.shape().text());
  }
  return Examples::of(stage("tensors", std::move(arguments)), {}, tensors);
}

FixedExamples<2> text(std::string_view path, const TextOptions& options) {
  std::vector<std::string> words = windows(options);
  words.push_back(options.vocabulary.characters());
  return FixedExamples<2>(Examples::of(stage("text", words), {std::string(path)}));
}

FixedExamples<2> tales(std::int64_t characters, const TextOptions& options, std::uint64_t seed) {
  std::vector<std::string> words = windows(options);
  words.insert(words.begin(), {fmt::format("{}", seed), number(characters)});
  return FixedExamples<2>(Examples::of(stage("tales", words), {}));
}

FixedExamples<1> lines(std::string_view path, const Vocabulary& vocabulary) {
  return FixedExamples<1>(
      Examples::of(stage("lines", {vocabulary.characters()}), {std::string(path)}));
}

Examples csv(std::string_view path, const std::vector<CsvColumn>& columns,
             const CsvOptions& options) {
  std::vector<std::string> arguments = {std::string(1, options.delimiter),
                                        options.header ? "header" : "plain"};
  for (const CsvColumn& column : columns) {
    std::string text = column.skip ? "skip" : std::string(dtype_name(column.dtype));
    if (column.cells != 1) text += "*" + number(column.cells);
    if (column.missing) text += "=" + *column.missing;
    arguments.push_back(std::move(text));
  }
  return Examples::of(stage("csv", std::move(arguments)), {std::string(path)});
}

}  // namespace troupe::data
