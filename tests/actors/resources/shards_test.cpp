// The machine that writes and reads the files of checkpoints, against a disk that fails.
#include "actors/resources/shards.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/log.hpp"
#include "serialization/checkpoint.hpp"
#include "tests/serialization/faulty_files.hpp"

using namespace troupe;
using troupe::testing::FaultyFiles;

namespace {

// What an executor asks, kept alive.
struct ShardAsked {
  PlanInfo info;
  External external;
  ResourceRequest request;

  ShardAsked(std::string verb, AttrMap attrs, std::vector<Tensor> operands) {
    external = {.resource = "shards", .verb = std::move(verb), .on_host = true};
    info.external = &external;
    info.def.name = "shard";
    info.def.attrs = std::move(attrs);
    request.attempt.id = {1, 1};
    request.items.resize(1);
    request.items[0].node = &info;
    request.items[0].operands = std::move(operands);
  }
  ShardAsked(const ShardAsked&) = delete;  // they point into each other
};

ResourceReply shards_say(Shards& shards, ShardAsked&& asked) {
  Resource::Outputs out;
  shards.ask(1, asked.request, out);
  REQUIRE(out.size() == 1);
  return std::get<ResourceReply>(out[0]);
}

ShardAsked to_save(const CheckpointDraft& draft, const std::string& token, Tensor value,
                   bool refuse_nan = false) {
  return {"save",
          {{"names", std::vector<std::string>{"v"}},
           {"file", std::string("shard-0")},
           {"refuse_nan", refuse_nan}},
          {Tensor::scalar(draft.folder()), Tensor::scalar(token), std::move(value)}};
}

}  // namespace

TEST_CASE("a shard is written into the folder of its draft, and each answer names other files") {
  FaultyFiles files(1);
  auto draft = CheckpointDraft::begin("d", files);
  REQUIRE(draft.ok());
  Shards shards(files, 0xabcdef0123456789);
  const Tensor value = Tensor::of<float>({2}, {1, 2});
  const ResourceReply first = shards_say(shards, to_save(*draft, draft->token(), value));
  REQUIRE_MESSAGE(first.status.ok(), first.status.text());
  const ResourceReply again = shards_say(shards, to_save(*draft, draft->token(), value));
  REQUIRE(again.status.ok());
  const auto one = value_or_throw(parse_shards(first.values.at(0).item<std::string>()));
  const auto two = value_or_throw(parse_shards(again.values.at(0).item<std::string>()));
  REQUIRE(one.size() == 1);
  REQUIRE(two.size() == 1);
  CHECK(one[0].name != two[0].name);

  ShardAsked read("restore",
                  {{"file", draft->folder() + "/" + two[0].name},
                   {"names", std::vector<std::string>{"v"}},
                   {"sha256", std::vector<std::string>{two[0].tensors[0].sha256}}},
                  {});
  read.info.def.out_types = {DType::f32};
  read.info.def.out_shapes = {PartialShape{2}};
  const ResourceReply back = shards_say(shards, std::move(read));
  REQUIRE_MESSAGE(back.status.ok(), back.status.text());
  CHECK(Tensor::same(back.values.at(0), value));
}

TEST_CASE("a shard is refused in another folder, with a NaN, and what is no such request") {
  FaultyFiles files(1);
  auto draft = CheckpointDraft::begin("d", files);
  REQUIRE(draft.ok());
  Shards shards(files, 1);
  const Tensor value = Tensor::scalar(1.f), nan = Tensor::scalar(std::nanf(""));
  const Status elsewhere = shards_say(shards, to_save(*draft, "7", value)).status;
  CHECK(elsewhere.code() == Code::failed_precondition);
  CHECK(elsewhere.message().find("shared by all machines") != std::string::npos);
  CHECK(shards_say(shards, to_save(*draft, draft->token(), nan)).status.ok());
  const Status refused = shards_say(shards, to_save(*draft, draft->token(), nan, true)).status;
  CHECK(refused.code() == Code::out_of_range);
  CHECK(refused.message() == "variable 'v' has a NaN");

  ShardAsked no_names("save", {}, {});
  CHECK(shards_say(shards, std::move(no_names)).status.code() == Code::invalid_argument);
  ShardAsked too_few = to_save(*draft, draft->token(), value);
  too_few.request.items[0].operands.pop_back();
  CHECK(shards_say(shards, std::move(too_few)).status.code() == Code::invalid_argument);
  ShardAsked no_folder = to_save(*draft, draft->token(), value);
  no_folder.request.items[0].operands[0] = Tensor::scalar(1.f);
  CHECK(shards_say(shards, std::move(no_folder)).status.code() == Code::invalid_argument);
  ShardAsked verb("erase", {}, {});
  CHECK(shards_say(shards, std::move(verb)).status.code() == Code::unimplemented);
  ShardAsked unknown("restore",
                     {{"file", std::string("d/none")},
                      {"names", std::vector<std::string>{"v"}},
                      {"sha256", std::vector<std::string>{"00"}}},
                     {});
  CHECK(shards_say(shards, std::move(unknown)).status.code() == Code::invalid_argument);
}

TEST_CASE("a full disk at any call of a shard is told, and the draft leaves nothing") {
  for (int call = 0;; ++call) {
    INFO("call " << call);
    FaultyFiles files(1);
    bool failed = false;
    {
      auto draft = CheckpointDraft::begin("d", files);
      REQUIRE(draft.ok());
      Shards shards(files, 1);
      files.fail_at(files.calls() + call);
      const Status full =
          shards_say(shards, to_save(*draft, draft->token(), Tensor::scalar(1.f))).status;
      failed = files.failed();
      files.fail_at(-1);
      CHECK(full.ok() != failed);
      if (failed) CHECK(full.code() == Code::resource_exhausted);
    }
    CHECK(files.list("d")->empty());
    if (!failed) break;
  }
}
