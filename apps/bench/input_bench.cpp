// Input from files: what readers and decoders reach of the machine's rate, and pipelines beside
// those of peers on the same files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <thread>

#include "actors/resources/dataset_actor.hpp"
#include "apps/bench/jpeg_file.hpp"
#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/tensorflow_peer.hpp"
#include "apps/bench/torch_peer.hpp"
#include "apps/troupe.hpp"
#include "core/descriptor.hpp"
#include "core/log.hpp"
#include "ops/data/images/picture.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// As in input_peer.py.
constexpr std::int64_t kImageBatch = 32, kRecordBatch = 128;
constexpr int kImageStep = 8, kRecordStep = 64;  // batches
constexpr int kPictures = 256, kHeight = 375, kWidth = 500;
constexpr int kRecords = 60'000, kRecordFiles = 4;
constexpr std::size_t kLargeRecord = 110'000, kBytesOfRecords = std::size_t{256} << 20;

// A folder that goes with this.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "troupe-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error(failed_precondition("no temporary folder"));
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Until the batches ahead of a pipeline are made: others are measured next.
void settle() {
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  for (auto before = used() - std::chrono::seconds(1);;) {
    const auto now = used();
    if (now - before < std::chrono::milliseconds(5)) return;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Expected<double> seconds_of(FunctionRef<Status()> call) {
  const Clock::time_point begin = Clock::now();
  TROUPE_TRY(call());
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A row of `amount` per second of `ours`, beside `theirs`, in turns: the ratio is the median of
// those of the rounds.
Expected<BenchRow> rate_beside(std::string name, double amount, std::string unit, std::string peer,
                               int rounds, FunctionRef<Status()> ours,
                               FunctionRef<Status()> theirs) {
  TROUPE_TRY(ours());
  TROUPE_TRY(theirs());
  std::vector<double> mine, other;
  for (int round = 0; round < rounds; ++round) {
    TROUPE_TRY(const double mine_s, seconds_of(ours));
    TROUPE_TRY(const double other_s, seconds_of(theirs));
    mine.push_back(amount / mine_s);
    other.push_back(amount / other_s);
  }
  BenchRow row{std::move(name), median(mine), std::move(unit), std::move(peer), median(other)};
  row.ratio = median_ratio(mine, other);
  return row;
}

Expected<Pipeline> opened(const data::Examples& examples) {
  Graph scratch;
  const Output first = examples.outputs(scratch)[0];
  return open_local_dataset(scratch.node(scratch.node(first.node()).inputs[0].node));
}

// Reads all elements.
Status drain(const data::Examples& examples) {
  TROUPE_TRY(Pipeline pipeline, opened(examples));
  for (std::uint64_t e = 0;; ++e) {
    const auto values = pipeline.element(e);
    if (!values.ok()) return is_dataset_end(values.status()) ? ok_status() : values.status();
  }
}

// All of a file, by read(2).
Status read_by_system(const std::string& path, std::span<char> buffer) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return failed_precondition("cannot open '" + path + "'");
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0) return failed_precondition("cannot read '" + path + "'");
    if (n == 0) return ok_status();
  }
}

Expected<BenchRow> time_reading(const std::string& name, std::size_t record,
                                const BenchOptions& options) {
  const Scratch scratch;
  const std::string path = scratch.path("records");
  const std::size_t records = kBytesOfRecords / record;
  {
    TROUPE_TRY(data::RecordWriter writer, data::RecordWriter::create(path));
    std::string content(record, '\0');
    for (std::size_t i = 0; i < record; ++i) content[i] = char(i * 31 % 251);
    for (std::size_t i = 0; i < records; ++i) TROUPE_TRY(writer.write(content));
    TROUPE_TRY(writer.finish());
  }
  // At a page, where the kernel copies fastest: some processors take half as long again a few bytes
  // behind.
  constexpr std::size_t kPage = 4096, kPart = std::size_t{256} << 10;
  std::vector<char> memory(kPart + kPage);
  const std::span<char> buffer(
      memory.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage), kPart);
  return rate_beside(
      name, double(fs::file_size(path)) / 1e6, "MB/s", "read(2) of the page cache", options.rounds,
      [&] { return drain(data::tf_records(path)); }, [&] { return read_by_system(path, buffer); });
}

Expected<BenchRow> time_decoding(const std::string& name, const BenchOptions& options) {
  std::vector<std::string> files;
  for (int i = 0; i < 32; ++i) files.push_back(drawn_jpeg_file(kHeight, kWidth, std::uint64_t(i)));
  std::vector<unsigned char> pixels;
  const data::ImageOptions as_it_is{.dtype = DType::u8};
  return rate_beside(
      name, double(files.size()), "images/s", "libjpeg-turbo", options.rounds,
      [&]() -> Status {
        for (const std::string& file : files) TROUPE_TRY(decode_image_tensor(file, as_it_is));
        return ok_status();
      },
      [&] {
        for (const std::string& file : files) decode_by_libjpeg(file, pixels);
        return ok_status();
      });
}

Status write_pictures(const std::string& folder) {
  for (int i = 0; i < kPictures; ++i) {
    const std::string into = fmt::format("{}/class_{}", folder, i % 4);
    fs::create_directories(into);
    std::ofstream out(fmt::format("{}/{:03}.jpg", into, i), std::ios::binary);
    out << drawn_jpeg_file(kHeight, kWidth, std::uint64_t(i));
    if (!out.flush()) return failed_precondition("cannot write pictures to " + folder);
  }
  return ok_status();
}

Status write_examples(const std::string& folder) {
  fs::create_directories(folder);
  Random random(5);
  for (int f = 0; f < kRecordFiles; ++f) {
    TROUPE_TRY(data::RecordWriter writer,
               data::RecordWriter::create(fmt::format("{}/{}.tfrecord", folder, f)));
    for (int i = 0; i < kRecords / kRecordFiles; ++i) {
      std::string image(28 * 28, '\0');
      for (char& pixel : image) pixel = char(random.below(256));
      TROUPE_TRY(const std::string record,
                 data::tf_example({{"image", Tensor::scalar(std::string_view(image))},
                                   {"label", Tensor::scalar(std::int64_t(random.below(10)))}}));
      TROUPE_TRY(writer.write(record));
    }
    TROUPE_TRY(writer.finish());
  }
  return ok_status();
}

// A kind of pipeline that peers have, too.
struct Kind {
  const char* name;  // of input_peer.py
  const char* unit;
  std::int64_t batch;
  int step;  // batches
  Status (*write)(const std::string& folder);
  std::vector<Output> (*read)(Graph& graph, const std::string& folder, int threads);
};

std::vector<Output> read_pictures(Graph& graph, const std::string& folder, int threads) {
  const auto [images, labels] =
      data::labelled_files(folder)
          .repeat()
          .decode_image({.height = 224, .width = 224}, 0, {.parallel = threads})
          .batch(kImageBatch)
          .prefetch(2)
          .outputs<2>(graph);
  return {images, labels};
}

std::vector<Output> read_examples(Graph& graph, const std::string& folder, int) {
  return data::tf_records(folder + "/*.tfrecord")
      .repeat()
      .parse_example({{.name = "image", .dtype = DType::u8, .shape = {28, 28}, .raw = true},
                      {.name = "label", .dtype = DType::i64}})
      .batch(kRecordBatch)
      .prefetch(2)
      .outputs(graph);
}

constexpr Kind kKinds[] = {
    {"images", "us/image", kImageBatch, kImageStep, write_pictures, read_pictures},
    {"records", "us/record", kRecordBatch, kRecordStep, write_examples, read_examples}};

// A python3 and the library in it, by the words of input_peer.py.
struct InputPeer {
  std::string python, library;
  std::vector<std::string> modes;
};

Expected<std::vector<InputPeer>> find_peers(const BenchOptions& options) {
  std::vector<InputPeer> peers;
  if (options.beside("torch")) {
    TROUPE_TRY(const auto found, TorchPeer::find());
    for (const TorchPeer& torch : found)
      peers.push_back({torch.python(), "torch", {"alone", "workers"}});
  }
  if (options.beside("tensorflow")) {
    TROUPE_TRY(const TensorflowPeer found, TensorflowPeer::find());
    peers.push_back({found.python(), "tensorflow", {"map"}});
  }
  return peers;
}

bool lacks_pillow(const InputPeer& peer) {
  return peer.library == "torch" &&
         !output_of(fmt::format("{} -c 'import PIL.Image' 2>/dev/null", peer.python)).ok();
}

Expected<std::vector<PeerStep>> start(const std::vector<InputPeer>& peers, const Kind& kind,
                                      const std::string& folder, int threads) {
  std::vector<PeerStep> steps;
  for (const InputPeer& peer : peers) {
    if (std::string_view(kind.name) == "images" && lacks_pillow(peer)) {
      TROUPE_LOG(warning, "bench",
                 peer.python + " cannot import PIL: no pictures beside PyTorch's DataLoader");
      continue;
    }
    for (const std::string& mode : peer.modes) {
      TROUPE_TRY(PeerScript script, PeerScript::start(peer.python, "input_peer.py",
                                                      {peer.library, kind.name, folder,
                                                       std::to_string(threads), mode}));
      const nlohmann::json about = script.about();
      steps.push_back({fmt::format("{} {}, {}", peer.library, about.value("version", ""), mode),
                       about.value("units", 1.0), std::move(script)});
    }
  }
  return steps;
}

Expected<BenchRow> time_pipeline(const std::string& name, const Kind& kind,
                                 const std::string& folder, int threads,
                                 const BenchOptions& options, PeerRounds peers) {
  Graph graph(1);
  const std::vector<Output> outputs = kind.read(graph, folder, threads);
  Cluster cluster;
  cluster.threads = threads;
  Session session(graph, cluster);
  TROUPE_TRY(CompiledStep step, session.try_compile(outputs));
  const auto take = [&]() -> Status {
    for (int i = 0; i < kind.step; ++i) TROUPE_TRY(step.try_run());
    return ok_status();
  };
  TROUPE_TRY(take());
  std::vector<double> ours;
  const double examples = double(kind.batch) * kind.step;
  for (int round = 0; round < options.rounds; ++round) {
    TROUPE_TRY(const double seconds, seconds_of(take));
    ours.push_back(1e6 * seconds / examples);
    settle();
    TROUPE_TRY(peers.take(0));
  }
  BenchRow row{name, 0, kind.unit};
  peers.compare(row, ours,
                [](const PeerScript::Round& r, double units) { return 1e3 * r.ms / units; });
  TROUPE_TRY(session.try_close());
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_input(const BenchOptions& options) {
  TROUPE_TRY(const std::vector<InputPeer> peers, find_peers(options));
  std::vector<BenchRow> rows;
  const auto add = [&](Expected<BenchRow> row) -> Status {
    if (row.ok()) rows.push_back(std::move(*row));
    return row.status();
  };
  for (const auto& [name, record] :
       {std::pair("input.tfrecord.large", kLargeRecord), {"input.tfrecord.small", 1000}})
    if (wanted(options, name)) TROUPE_TRY(add(time_reading(name, record, options)));
  if (wanted(options, "input.jpeg")) TROUPE_TRY(add(time_decoding("input.jpeg", options)));
  for (const Kind& kind : kKinds) {
    std::optional<Scratch> scratch;
    for (const int threads : options.threads) {
      const std::string name = fmt::format("input.{}.t{}", kind.name, threads);
      if (!wanted(options, name)) continue;
      if (!scratch) {
        scratch.emplace();
        TROUPE_TRY(kind.write(scratch->path(kind.name)));
      }
      const std::string folder = scratch->path(kind.name);
      TROUPE_TRY(auto steps, start(peers, kind, folder, threads));
      TROUPE_TRY(
          add(time_pipeline(name, kind, folder, threads, options, PeerRounds(std::move(steps)))));
    }
  }
  return rows;
}

}  // namespace troupe
