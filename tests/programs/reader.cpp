// A job that trains on files, for tests/accept/programs_5.sh:
//   reader write FOLDER               writes TFRecord files, one of them packed
//   reader images|records FOLDER STEPS FILE [options of jobs and of clusters]
// trains softmax regression on pictures in folders or on records, and saves its variables.
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/troupe.hpp"
using namespace troupe;

namespace {

constexpr std::int64_t kSide = 16;
constexpr int kClasses = 4, kRecords = 400;

std::string path_of(const std::string& folder, int file) {
  return folder + "/" + std::to_string(file) + ".tfrecord";
}

void write_records(const std::string& folder) {
  for (int file = 0; file < 3; ++file) {
    data::RecordWriter writer(path_of(folder, file),
                              file == 1 ? data::Packing::gzip : data::Packing::none);
    for (int i = 0; i < kRecords; ++i) {
      std::string pixels(std::size_t(kSide * kSide), '\0');
      for (std::size_t p = 0; p < pixels.size(); ++p)
        pixels[p] = char((p * std::size_t(i % kClasses + 1) * 3 + std::size_t(i + file)) % 256);
      throw_if_error(writer.write(value_or_throw(
          data::tf_example({{"pixels", Tensor::scalar(std::string_view(pixels))},
                            {"label", Tensor::scalar(std::int64_t{i % kClasses})}}))));
    }
    throw_if_error(writer.finish());
  }
}

struct Net : nn::Module {
  explicit Net(Scope scope) : Module(std::move(scope)) {}
  nn::Linear linear{*this, "linear", kSide* kSide, kClasses};
};

// Shuffled for ever; each picture is a little lighter or darker in each pass.
std::array<Output, 2> input(Graph& g, std::string_view kind, const std::string& folder) {
  const auto varied = [](Output x, Output label) {
    const Output drawn = random_uniform(x.graph(), PartialShape::scalar());
    return std::tuple{x * (0.5f + drawn), label};
  };
  if (kind == "images")
    return data::labelled_files(folder)
        .shuffle(1000, 7)
        .repeat()
        .decode_image({.height = kSide, .width = kSide, .channels = 1}, 0, {.parallel = 2})
        .map(g, varied)
        .batch(8)
        .prefetch(2)
        .outputs<2>(g);
  return data::tf_records(folder + "/*.tfrecord", {.at_once = 2})
      .parse_example(
          {{.name = "pixels", .dtype = DType::u8, .shape = {kSide, kSide, 1}, .raw = true},
           {.name = "label", .dtype = DType::i64}})
      .shuffle(100, 7)
      .repeat()
      .map(g, [&](Output x, Output label) { return varied(cast<float>(x) / 255.0f, label); })
      .batch(8)
      .prefetch(2)
      .outputs<2>(g);
}

}  // namespace

int main(int argc, char** argv) {
  become_worker_if_started_as_one();
  const std::string_view kind = argc > 1 ? argv[1] : "";
  if (kind == "write" && argc == 3) {
    write_records(argv[2]);
    return 0;
  }
  if (argc < 5) return 2;
  Graph g(3);
  auto [x, label] = input(g, kind, argv[2]);
  const Net net{g.scope("net")};
  const Output loss = mean(softmax_cross_entropy(net.linear(x), label));
  const Op train = optim::Momentum{.lr = 0.01, .momentum = 0.9}.minimize(loss);
  Session session{g, Cluster::from_args(argc, argv)};
  Job job{session, JobOptions::from_args(argc, argv)};
  auto step = session.compile({loss}, {train});
  for (const JobStep& s : job.steps(std::atoi(argv[3]))) {
    auto [l] = step.run<float>(s);
    if (s.every(10)) job.report({{"loss", l}});
  }
  session.save(argv[4]);
  return job.exit_code();
}
