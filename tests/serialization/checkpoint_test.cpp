#include "serialization/checkpoint.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "core/log.hpp"
#include "serialization/detail/manifest.hpp"
#include "serialization/digest.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

// Tells steps apart by every one of its tensors.
CheckpointData data_of(CommitNumber step) {
  CheckpointData data;
  data.step = step;
  data.commit = 2 * step + 1;
  data.seed = 7;
  data.tensors = {{"b", Tensor::of<double>({2}, {double(step), -1})},
                  {"flag", Tensor::scalar(step % 2 == 1)},
                  {"note", Tensor::of<std::string>({2}, {"step", std::to_string(step)})},
                  {"w", Tensor::of<float>({2, 2}, {float(step), 1, 2, 3})}};
  data.metadata = {{"model", "mlp"}};
  data.graph_hash = "abc";
  data.numeric_profile = "v3";
  data.datasets = {{{"", "data"}, step + 3, {step, step + 1}}, {{"mine", "test"}, 3, {}}};
  data.resources = {
      {{"queue", "", "jobs"}, Tensor::of<std::uint8_t>({3}, {1, 2, std::uint8_t(step)})},
      {{"queue", "mine", "jobs"}, Tensor::of<std::uint8_t>({2}, {std::uint8_t(step), 0})},
      {{"stack", "", "jobs"}, Tensor::of<std::uint8_t>({1}, {std::uint8_t(step)})}};
  data.note = std::string("at\0", 3) + std::to_string(step);
  data.once = {"init", std::to_string(step)};
  data.fetches = {Tensor::scalar(float(step)), Tensor::of<std::string>({1}, {"x"})};
  data.draws = step + 5;
  data.graph = {{3, 0, step}, {7, 2, step + 1}};
  return data;
}

bool same_data(const CheckpointData& a, const CheckpointData& b) {
  bool tensors = a.tensors.size() == b.tensors.size() &&
                 std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(),
                            [](const auto& x, const auto& y) {
                              return x.first == y.first && Tensor::same(x.second, y.second);
                            });
  bool resources = a.resources.size() == b.resources.size();
  for (std::size_t i = 0; resources && i < a.resources.size(); ++i)
    resources = a.resources[i].resource == b.resources[i].resource &&
                Tensor::same(a.resources[i].state, b.resources[i].state);
  const bool fetches =
      std::equal(a.fetches.begin(), a.fetches.end(), b.fetches.begin(), b.fetches.end(),
                 [](const Tensor& x, const Tensor& y) { return Tensor::same(x, y); });
  return tensors && resources && fetches && a.note == b.note && a.once == b.once &&
         a.draws == b.draws && a.graph == b.graph && a.step == b.step && a.commit == b.commit &&
         a.seed == b.seed && a.metadata == b.metadata && a.graph_hash == b.graph_hash &&
         a.numeric_profile == b.numeric_profile && a.datasets == b.datasets;
}

// As those of earlier formats, in which nothing of the program's stood.
CheckpointData without_program(CheckpointData data) {
  data.note.clear();
  data.once.clear();
  data.fetches.clear();
  data.draws = 0;
  data.graph.clear();
  return data;
}

// Damaged checkpoints are warned about; these tests damage thousands.
struct Quiet {
  LogLevel before = log_level();
  Quiet() { set_log_level(LogLevel::error); }
  ~Quiet() { set_log_level(before); }
};

CommitNumber latest_step(const std::string& dir) { return latest_checkpoint(dir).value().step; }

}  // namespace

TEST_CASE("a checkpoint gives back what was written") {
  TemporaryDir dir;
  auto info = write_checkpoint(dir.path("a/b"), data_of(12));
  REQUIRE(info.ok());
  CHECK(info->path == dir.path("a/b/ckpt-12"));
  CHECK(dir.names("a/b") == std::vector<std::string>{"ckpt-12"});
  CHECK(verify_checkpoint(info->path).ok());
  auto back = read_checkpoint(info->path);
  REQUIRE(back.ok());
  CHECK(same_data(*back, data_of(12)));
}

namespace {

// Changes the manifest of ckpt-6 and its checksum.
void change_manifest(const TemporaryDir& dir,
                     const std::function<void(nlohmann::ordered_json&)>& change) {
  const std::string path = dir.path("ckpt-6/manifest.json");
  std::ifstream in(path);
  auto json = nlohmann::ordered_json::parse(in);
  json.erase("crc32c");
  change(json);
  std::string text = json.dump();
  text.pop_back();
  char sum[16];
  std::snprintf(sum, sizeof sum, "%08x", detail::crc32c(std::as_bytes(std::span(text))));
  text += std::string(",\"crc32c\":\"") + sum + "\"}\n";
  std::ofstream(path) << text;
}

void change_manifest(const TemporaryDir& dir, const std::string& from, const std::string& to) {
  change_manifest(dir, [&](auto& json) {
    std::string text = json.dump();
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    json = nlohmann::ordered_json::parse(text.replace(at, from.size(), to));
  });
}

// ckpt-6 as an older format had it: one hash of all tensors, and not where each is.
void make_older(const TemporaryDir& dir, const std::string& format, const CheckpointData& data) {
  change_manifest(dir, [&](auto& json) {
    json["format"] = "troupe checkpoint " + format;
    json.erase("tensors_sha256");
    json["params_sha256"] = params_sha256({data.tensors.begin(), data.tensors.end()});
    for (auto& file : json["files"]) {
      file.erase("tensors");
      if (file["name"] == "shard.tensors") file["name"] = "other.tensors";
    }
  });
  std::filesystem::rename(dir.path("ckpt-6/shard.tensors"), dir.path("ckpt-6/other.tensors"));
}

}  // namespace

// As this program wrote it when the folder was named by the commit.
TEST_CASE("a checkpoint of format 2 is read: its number is the commit, one more than the step") {
  TemporaryDir dir;
  CheckpointData data = without_program(data_of(6));
  data.resources.clear();
  REQUIRE(write_checkpoint(dir.path(), data).ok());
  make_older(dir, "2", data);
  change_manifest(dir, [](auto& json) { json.erase("commit"), json.erase("resources"); });

  CHECK(latest_checkpoint(dir.path())->path == dir.path("ckpt-6"));
  auto back = read_checkpoint(dir.path("ckpt-6"));
  REQUIRE(back.ok());
  CHECK(back->commit == 6);
  CHECK(back->step == 5);
  back->step = data.step;
  back->commit = data.commit;
  CHECK(same_data(*back, data));
  // The step that follows has its number, and takes its place.
  REQUIRE(write_checkpoint(dir.path(), data_of(6)).ok());
  CHECK(read_checkpoint(dir.path("ckpt-6"))->step == 6);
}

TEST_CASE("a checkpoint of format 4 is read: in it a program had written nothing down") {
  TemporaryDir dir;
  const CheckpointData data = without_program(data_of(6));
  REQUIRE(write_checkpoint(dir.path(), data).ok());
  make_older(dir, "4", data);
  auto back = read_checkpoint(dir.path("ckpt-6"));
  REQUIRE_MESSAGE(back.ok(), back.status().text());
  CHECK(same_data(*back, data));
}

TEST_CASE("a checkpoint of format 5 is read: it did not say where each tensor is") {
  TemporaryDir dir;
  const CheckpointData data = data_of(6);
  REQUIRE(write_checkpoint(dir.path(), data).ok());
  make_older(dir, "5", data);
  auto back = read_checkpoint(dir.path("ckpt-6"));
  REQUIRE_MESSAGE(back.ok(), back.status().text());
  CHECK(same_data(*back, data));
  auto stored = open_checkpoint(dir.path("ckpt-6"));
  REQUIRE(stored.ok());
  CHECK(stored->files.empty());
  CHECK(same_data(stored->data, data));
  change_manifest(dir, [](auto& json) { json["params_sha256"] = std::string(64, '0'); });
  CHECK(read_checkpoint(dir.path("ckpt-6")).status().code() == Code::data_loss);
}

TEST_CASE("shards of several writers become one checkpoint, whose tensors are read one by one") {
  TemporaryDir dir;
  const CheckpointData data = data_of(6);
  CheckpointData rest = data;
  rest.tensors.clear();
  // Each tensor by a writer of its own, and one that stays with whoever finishes.
  rest.tensors.insert(*data.tensors.begin());
  auto draft = CheckpointDraft::begin(dir.path());
  REQUIRE(draft.ok());
  CHECK(check_draft(disk(), draft->folder(), draft->token()).ok());
  std::vector<CheckpointFile> shards;
  for (auto each = std::next(data.tensors.begin()); each != data.tensors.end(); ++each) {
    auto written =
        write_shards(disk(), draft->folder(), "part" + std::to_string(shards.size()), {*each});
    REQUIRE_MESSAGE(written.ok(), written.status().text());
    // As it comes from another process.
    auto told = parse_shards(value_or_throw(text_of(*written)));
    REQUIRE_MESSAGE(told.ok(), told.status().text());
    shards.insert(shards.end(), told->begin(), told->end());
  }
  // Of a writer whose answer never came.
  REQUIRE(write_shards(disk(), draft->folder(), "nobody", data.tensors).ok());
  auto info = draft->finish(rest, shards);
  REQUIRE_MESSAGE(info.ok(), info.status().text());
  CHECK(same_data(value_or_throw(read_checkpoint(info->path)), data));
  for (const std::string& name : dir.names("ckpt-6"))
    CHECK_MESSAGE((name.find("nobody") == std::string::npos && name != "draft"), name);

  auto stored = open_checkpoint(info->path);
  REQUIRE(stored.ok());
  CHECK(stored->data.tensors.empty());
  std::size_t found = 0;
  for (const CheckpointFile& file : stored->files)
    for (const StoredTensor& each : file.tensors) {
      const std::string path = info->path + "/" + file.name;
      auto read = read_stored(disk(), path, {each});
      REQUIRE_MESSAGE(read.ok(), read.status().text());
      REQUIRE(read->size() == 1);
      CHECK(tensor_sha256(read->front()) == tensor_sha256(data.tensors.at(each.name)));
      ++found;
      StoredTensor other = each;
      other.sha256[3] ^= 1;
      CHECK(read_stored(disk(), path, {other}).status().code() == Code::data_loss);
      other = each;
      other.name += "x";
      CHECK(read_stored(disk(), path, {other}).status().code() == Code::data_loss);
    }
  CHECK(found == data.tensors.size());
}

TEST_CASE("a folder that is not that of the draft, and a shard that is not there, are refused") {
  TemporaryDir dir, other;
  auto draft = CheckpointDraft::begin(dir.path());
  REQUIRE(draft.ok());
  auto elsewhere = CheckpointDraft::begin(other.path());
  REQUIRE(elsewhere.ok());
  CHECK(check_draft(disk(), draft->folder(), draft->token()).ok());
  for (const std::string& folder : {elsewhere->folder(), dir.path(), dir.path("none")}) {
    const Status status = check_draft(disk(), folder, draft->token());
    CHECK(status.code() == Code::failed_precondition);
    CHECK(status.message().find("shared by all machines") != std::string::npos);
  }
  auto shards = write_shards(disk(), elsewhere->folder(), "part", data_of(6).tensors);
  REQUIRE(shards.ok());
  const Status status = draft->finish(without_program(data_of(6)), *shards).status();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(status.message().find("'part") != std::string::npos);
  CHECK(dir.names().empty());
  { auto given_up = CheckpointDraft::begin(dir.path()); }
  CHECK(dir.names().empty());
}

TEST_CASE("what a writer of shards cannot have answered is refused") {
  TemporaryDir dir;
  const auto written = value_or_throw(write_shards(disk(), dir.path(), "part", data_of(6).tensors));
  const std::string good = value_or_throw(text_of(written));
  REQUIRE(parse_shards(good).ok());
  const std::pair<const char*, const char*> kWrong[] = {
      {"part-00000.safetensors", "../part.safetensors"},
      {"part-00000.safetensors", ""},
      {"\"size\":", "\"size\":9999999"},
      {"\"dtype\":\"", "\"dtype\":\"x"},
      {"\"shape\":[", "\"shape\":[-1,"},
      {"\"sha256\":\"", "\"sha\":\""},
      {"\"name\":", "\"name\":1,\"n\":"},
      {"[{", "[[{"},
      {"}]", "}"}};
  for (const auto& [from, to] : kWrong) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, std::string(from).size(), to);
    CHECK_MESSAGE(!parse_shards(text).ok(), text);
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(!parse_shards(good.substr(0, size)).ok());
}

TEST_CASE("a checkpoint of format 3 is read: it knew of no resources") {
  TemporaryDir dir;
  CheckpointData data = without_program(data_of(6));
  data.resources.clear();
  REQUIRE(write_checkpoint(dir.path(), data).ok());
  make_older(dir, "3", data);
  change_manifest(dir, [](auto& json) { json.erase("resources"); });
  auto back = read_checkpoint(dir.path("ckpt-6"));
  REQUIRE_MESSAGE(back.ok(), back.status().text());
  CHECK(same_data(*back, data));
  change_manifest(dir, "troupe checkpoint 3", "troupe checkpoint 7");
  const Status newer = read_checkpoint(dir.path("ckpt-6")).status();
  CHECK(newer.code() == Code::failed_precondition);
  CHECK(newer.message().find("troupe checkpoint 7") != std::string::npos);
}

TEST_CASE("a manifest whose resources are not its files is refused") {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"file\":\"resource-00001.state\"", "\"file\":\"resource-00000.state\""},
           {"\"file\":\"resource-00001.state\"", "\"file\":\"resource-00009.state\""},
           {"{\"kind\":\"stack\",\"container\":\"\"", "{\"kind\":\"queue\",\"container\":\"\""},
           {"\"kind\":\"stack\"", "\"kind\":7"}}) {
    TemporaryDir dir;
    REQUIRE(write_checkpoint(dir.path(), data_of(6)).ok());
    change_manifest(dir, from, to);
    CHECK(read_checkpoint(dir.path("ckpt-6")).status().code() == Code::data_loss);
  }
}

TEST_CASE("a resource without a state is not written") {
  TemporaryDir dir;
  CheckpointData data = data_of(6);
  data.resources[0].state = Tensor();
  const Status status = write_checkpoint(dir.path(), data).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "queue 'jobs' has no state to write");
}

TEST_CASE("a checkpoint of several shards and chunks gives back what was written") {
  TemporaryDir dir;
  CheckpointData data;
  for (int i = 0; i < 5; ++i) {
    Tensor t = Tensor::make(DType::u64, {200'000}).value();  // 1.5 chunks
    for (int k = 0; k < 200'000; ++k) t.mutable_data<std::uint64_t>()[k] = mix64(k + i);
    data.tensors.emplace("t" + std::to_string(i), t);
  }
  data.tensors.emplace("empty", Tensor::zeros(DType::f32, {0, 3}).value());
  REQUIRE(write_checkpoint(dir.path(), data, {.keep = 3, .shard_bytes = 4'000'000}).ok());
  CHECK(dir.names("ckpt-0").size() == 4);  // 2 + 2 + 1 tensors, the manifest
  auto back = read_checkpoint(dir.path("ckpt-0"));
  REQUIRE(back.ok());
  CHECK(same_data(*back, data));
}

TEST_CASE("a checkpoint without tensors is one") {
  TemporaryDir dir;
  REQUIRE(write_checkpoint(dir.path(), CheckpointData{}).ok());
  CHECK(read_checkpoint(dir.path("ckpt-0")).ok());
}

TEST_CASE("the last checkpoints are kept and the newest is the latest") {
  TemporaryDir dir;
  for (CommitNumber step : {2, 9, 10, 11})
    REQUIRE(write_checkpoint(dir.path(), data_of(step), 2).ok());
  CHECK(dir.names() == std::vector<std::string>{"ckpt-10", "ckpt-11"});
  CHECK(latest_step(dir.path()) == 11);
  // One of a lower step is never the victim of those above it.
  REQUIRE(write_checkpoint(dir.path(), data_of(3), 1).ok());
  CHECK(dir.names() == std::vector<std::string>{"ckpt-10", "ckpt-11", "ckpt-3"});
}

TEST_CASE("a checkpoint of the same step is replaced, whole or damaged") {
  TemporaryDir dir;
  REQUIRE(write_checkpoint(dir.path(), data_of(5)).ok());
  CheckpointData other = data_of(5);
  other.seed = 8;
  REQUIRE(write_checkpoint(dir.path(), other).ok());
  CHECK(same_data(*read_checkpoint(dir.path("ckpt-5")), other));
  dir.write("ckpt-5/manifest.json", "{}");
  REQUIRE(write_checkpoint(dir.path(), data_of(5)).ok());
  CHECK(same_data(*read_checkpoint(dir.path("ckpt-5")), data_of(5)));
  CHECK(dir.names() == std::vector<std::string>{"ckpt-5"});
}

TEST_CASE("stray files and half-written checkpoints are never taken for one") {
  Quiet quiet;
  TemporaryDir dir;
  CHECK(latest_checkpoint(dir.path()).status().code() == Code::not_found);
  CHECK(latest_checkpoint(dir.path("nothing")).status().code() == Code::not_found);
  REQUIRE(write_checkpoint(dir.path(), data_of(5)).ok());
  for (const char* name : {".ckpt-9.tmp", "ckpt-9.tmp", "ckpt-09", "ckpt-+9", "ckpt-", "ckpt-9x",
                           "ckpt-99999999999999999999999"})
    std::filesystem::copy(dir.path("ckpt-5"), dir.path(name));
  CHECK(list_checkpoints(dir.path())->size() == 1);
  std::filesystem::create_directory(dir.path("ckpt-9"));  // no manifest
  dir.write("ckpt-10", "a file");
  std::filesystem::copy(dir.path("ckpt-5"), dir.path("ckpt-11"));  // of another step
  CHECK(latest_step(dir.path()) == 5);
  CHECK(verify_checkpoint(dir.path("ckpt-9")).code() == Code::not_found);
  CHECK(verify_checkpoint(dir.path("ckpt-11")).code() == Code::data_loss);
  // The next write takes the temporary one of an earlier crash away.
  REQUIRE(write_checkpoint(dir.path(), data_of(6)).ok());
  CHECK(!std::filesystem::exists(dir.path(".ckpt-9.tmp")));
}

TEST_CASE("hostile changes of one bit of a checkpoint are all found") {
  Quiet quiet;
  FaultyFiles files(1);
  CheckpointData small;
  small.step = 2;
  small.tensors = {{"s", Tensor::scalar("text")}, {"w", Tensor::scalar(1.f)}};
  REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
  REQUIRE(write_checkpoint("d", small, {}, files).ok());
  std::uint64_t flips = 0;
  auto names = files.list("d/ckpt-2").value();
  for (const std::string& name : names) {
    auto& bytes = files.bytes("d/ckpt-2/" + name);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit, ++flips) {
      INFO(name << " bit " << bit);
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
      REQUIRE(!verify_checkpoint("d/ckpt-2", files).ok());
      REQUIRE(!read_checkpoint("d/ckpt-2", files).ok());
      REQUIRE(latest_checkpoint("d", files)->step == 1);
      bytes[bit / 8] ^= std::byte(1 << bit % 8);
    }
  }
  CHECK(flips > 1000);
  CHECK(latest_checkpoint("d", files)->step == 2);
}

TEST_CASE("hostile truncations, growth, removals and swaps of checkpoint files are found") {
  Quiet quiet;
  FaultyFiles files(1);
  REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
  REQUIRE(write_checkpoint("d", data_of(2), {}, files).ok());
  auto refused = [&] {
    return !verify_checkpoint("d/ckpt-2", files).ok() && latest_checkpoint("d", files)->step == 1;
  };
  auto names = files.list("d/ckpt-2").value();
  CHECK(names.size() == 7);
  for (const std::string& name : names) {
    INFO(name);
    auto& bytes = files.bytes("d/ckpt-2/" + name);
    const auto whole = bytes;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      bytes.resize(size);
      REQUIRE(refused());
      bytes = whole;
    }
    bytes.push_back(std::byte{'\n'});
    CHECK(refused());
    bytes = files.bytes("d/ckpt-1/" + name);
    CHECK(refused());
    bytes = whole;
    REQUIRE(files.rename("d/ckpt-2/" + name, "d/ckpt-2/away").ok());
    CHECK(refused());
    REQUIRE(files.rename("d/ckpt-2/away", "d/ckpt-2/" + name).ok());
    CHECK(latest_checkpoint("d", files)->step == 2);
  }
}

TEST_CASE("hostile manifests with a right checksum stay inside their directory") {
  detail::Manifest manifest;
  for (const char* name : {"", ".", "..", "../x", "/etc/x", "a/b", ".hidden", "manifest.json"}) {
    manifest.files = {{name, 0, {}}};
    CHECK(detail::parse_manifest(*detail::format_manifest(manifest)).status().code() ==
          Code::data_loss);
  }
  manifest.files = {{"a", 0, {}}, {"a", 0, {}}};
  CHECK(!detail::parse_manifest(*detail::format_manifest(manifest)).ok());
  for (std::uint64_t size : {std::uint64_t{1}, std::uint64_t{3} << 20, ~std::uint64_t{0}}) {
    manifest.files = {{"a", size, {1, 2}}};
    CHECK(!detail::parse_manifest(*detail::format_manifest(manifest)).ok());
  }
  manifest.files = {{"a", (1u << 20) + 1, {1, 2}}};
  CHECK(detail::parse_manifest(*detail::format_manifest(manifest)).ok());
}

TEST_CASE("a checkpoint takes tensors that have a value only") {
  TemporaryDir dir;
  CheckpointData data;
  data.tensors["x"] = Tensor{};
  CHECK(write_checkpoint(dir.path(), data).status().code() == Code::invalid_argument);
  data.tensors["x"] = Tensor::scalar(1.f);
  data.metadata["bad"] = "\xff";
  CHECK(write_checkpoint(dir.path(), data).status().code() == Code::invalid_argument);
  CHECK(dir.names().empty());
}

TEST_CASE("a full disk at any call leaves the older checkpoints and nothing else") {
  Quiet quiet;
  for (int call = 0;; ++call) {
    INFO("call " << call);
    FaultyFiles files(1);
    REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
    files.fail_at(files.calls() + call);
    auto written = write_checkpoint("d", data_of(2), {.keep = 1}, files);
    bool failed = files.failed();
    files.fail_at(-1);
    if (written.ok()) {
      CHECK(latest_checkpoint("d", files)->step == 2);
      if (!failed) {  // past its last call
        CHECK(call > 20);
        break;
      }
      continue;  // the failure only kept an old one
    }
    CHECK(written.status().code() == Code::resource_exhausted);
    REQUIRE(latest_checkpoint("d", files).ok());
    CommitNumber step = latest_checkpoint("d", files)->step;
    // Only a failing sync after the rename leaves the new one, whole.
    CHECK((step == 1 || step == 2));
    auto names = files.list("d").value();
    for (const std::string& name : names) CHECK(name.starts_with("ckpt-"));
    CHECK(same_data(*read_checkpoint("d/ckpt-" + std::to_string(step), files), data_of(step)));
    // And training goes on.
    CHECK(write_checkpoint("d", data_of(3), {}, files).ok());
  }
}

TEST_CASE("a checkpoint is replaced where names cannot be swapped, and nothing is left") {
  FaultyFiles files(1);
  files.swaps = false;
  REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
  files.bytes("d/ckpt-1/manifest.json").pop_back();
  REQUIRE(!read_checkpoint("d/ckpt-1", files).ok());
  REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
  CHECK(same_data(*read_checkpoint("d/ckpt-1", files), data_of(1)));
  CHECK(files.list("d").value() == std::vector<std::string>{"ckpt-1"});
}

TEST_CASE("a checkpoint that somebody may go back to stays beside those that are kept") {
  TemporaryDir dir;
  for (CommitNumber step = 1; step <= 5; ++step)
    REQUIRE(write_checkpoint(dir.path(), data_of(step), {.keep = 2, .spare = {"ckpt-1"}}).ok());
  CHECK(dir.names() == std::vector<std::string>{"ckpt-1", "ckpt-4", "ckpt-5"});
  REQUIRE(write_checkpoint(dir.path(), data_of(6), {.keep = 2}).ok());
  CHECK(dir.names() == std::vector<std::string>{"ckpt-5", "ckpt-6"});
}

TEST_CASE("a folder that somebody has made in an old checkpoint stops no later one") {
  Quiet quiet;
  TemporaryDir dir;
  REQUIRE(write_checkpoint(dir.path(), data_of(1)).ok());
  std::filesystem::create_directory(dir.path("ckpt-1/@eaDir"));  // which is not removed with it
  for (CommitNumber step = 2; step <= 6; ++step) {
    const auto written = write_checkpoint(dir.path(), data_of(step), {.keep = 2});
    REQUIRE_MESSAGE(written.ok(), written.status().text());
  }
  CHECK(list_checkpoints(dir.path())->size() == 2);
  CHECK(latest_step(dir.path()) == 6);
  CHECK(std::filesystem::exists(dir.path(".ckpt-1.tmp/@eaDir")));
}

namespace {

// Whose reader is overtaken: `meanwhile` is called when it opens the state of a resource.
class OvertakenFiles : public FaultyFiles {
 public:
  using FaultyFiles::FaultyFiles;
  std::function<void()> meanwhile;
  Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    if (meanwhile && path.ends_with(".state")) std::exchange(meanwhile, nullptr)();
    return FaultyFiles::open(path);
  }
};

}  // namespace

TEST_CASE("a checkpoint that its writer removes or replaces while it is verified is not damaged") {
  OvertakenFiles files(1);
  const auto write = [&](const CheckpointData& data) {
    REQUIRE(write_checkpoint("d", data, {.keep = 2}, files).ok());
  };
  write(data_of(1));
  write(data_of(2));
  const auto all = list_checkpoints("d", files).value();
  REQUIRE(all.size() == 2);
  files.meanwhile = [&] { write(data_of(3)); };
  CHECK_FALSE(verify_listed(all[0], files).has_value());
  CheckpointData other = data_of(4);
  other.step = 2;
  files.meanwhile = [&] { write(other); };
  CHECK(verify_listed(all[1], files).value().ok());
  CHECK(same_data(*read_checkpoint("d/ckpt-2", files), other));
  files.bytes("d/ckpt-2/manifest.json").pop_back();
  CHECK(verify_listed(all[1], files).value().code() == Code::data_loss);
}

TEST_CASE("a checkpoint that cannot be read now is not passed over for an older one") {
  Quiet quiet;
  TemporaryDir dir;
  for (CommitNumber step : {1, 2}) REQUIRE(write_checkpoint(dir.path(), data_of(step)).ok());
  const std::string shard = dir.path("ckpt-2/shard-00000.safetensors");
  std::filesystem::rename(shard, shard + "2");
  std::filesystem::create_symlink(shard + "2", shard);  // which are not followed
  const Status refused = latest_checkpoint(dir.path()).status();
  CHECK(refused.code() == Code::failed_precondition);
  CHECK_MESSAGE(refused.message().find(shard) != std::string::npos, refused.text());
  // What is not there at all is damaged.
  std::filesystem::remove(shard);
  CHECK(latest_step(dir.path()) == 1);
}

TEST_CASE("a crash at any call leaves the newest complete checkpoint") {
  Quiet quiet;
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  int crashes = 0;
  for (int call = 0;; ++call) {
    bool over = false;
    for (std::uint64_t variant = 0; variant < 8; ++variant, ++crashes) {
      INFO("call " << call << " variant " << variant);
      FaultyFiles files(seed + variant * 1000 + std::uint64_t(call));
      files.swaps = variant % 2 == 0;
      REQUIRE(write_checkpoint("d", data_of(1), {}, files).ok());
      CommitNumber promised = 1;
      files.crash_at(files.calls() + call);
      for (CommitNumber step : {2, 3, 3})  // the last one replaces
        if (write_checkpoint("d", data_of(step), {.keep = 2}, files).ok()) promised = step;
      over = !files.crashed();
      files.restart();
      auto latest = latest_checkpoint("d", files);
      REQUIRE(latest.ok());
      CHECK(latest->step >= promised);
      auto back = read_checkpoint(latest->path, files);
      REQUIRE(back.ok());
      CHECK(same_data(*back, data_of(latest->step)));
      // The next one finds its place, whatever was left.
      REQUIRE(write_checkpoint("d", data_of(4), {.keep = 1}, files).ok());
      CHECK(latest_checkpoint("d", files)->step == 4);
    }
    if (over) break;
  }
  MESSAGE(crashes << " crashes");
  CHECK(crashes > 200);
}
