// The base of resources that answer every request at once.
#pragma once

#include <utility>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// A kind says what its verbs do, and what Participant asks of its logs and records. One that can be
// saved also says how a record is written and read, and which record makes a new resource what this
// one is; tests/outside/stack.cpp does.
template <class Log, class Record>
class PromptResource : public Resource, protected Participant<Log, Record, Resource::Output> {
 public:
  void ask(std::uint64_t id, ResourceRequest& request, Outputs& out) final {
    const AttemptInfo& attempt = request.attempt;
    this->learn(attempt.snapshot, out);
    Expected<std::vector<Tensor>> result = aborted("attempt " + attempt.id.text() + " is over");
    if (!this->live_.over(attempt.id)) result = answer_to(request);
    ResourceReply reply{id, result.status()};
    if (result.ok()) reply.values = std::move(result).value();
    out.push_back(std::move(reply));
    this->try_stage(out);
  }
  void stage(const StageRequest& request, Outputs& out) final {
    Participant<Log, Record, Output>::stage(request, out);
  }
  void live(const LiveList& list, Outputs& out) override { this->note(list, out); }

  Expected<ResourceState> save() const final {
    TROUPE_TRY(const Record all, whole());
    StateWriter out;
    out.number(this->committed_);
    TROUPE_TRY(write_record(all, out));
    return out.take();
  }
  Status load(const ResourceState& state) final {
    TROUPE_TRY(this->untouched());
    StateReader in(state);
    const CommitNumber s = in.number();
    TROUPE_TRY(Record all, read(in));
    this->committed_ = s;
    Outputs nobody_waits;
    return this->commit(s, {}, std::move(all), nobody_waits);
  }
  Expected<ResourceState> record() const final {
    if (!this->staged_) return this->nothing_staged();
    const auto& staged = *this->staged_;
    StateWriter out;
    out.staged({staged.s, staged.attempt, staged.hash});
    TROUPE_TRY(write_record(staged.record, out));
    return out.take();
  }
  Status stage_record(const ResourceState& state, Outputs& out) final {
    StateReader in(state);
    const StagedHeader header = in.staged();
    TROUPE_TRY(Record record, read(in));
    TROUPE_TRY(const bool is_new, this->make_way(header.s, header.attempt, out));
    if (is_new) this->staged_ = {header.s, header.attempt, header.hash, std::move(record)};
    return ok_status();
  }

 protected:
  // Of an attempt that is not over. The outputs of the request's items.
  virtual Expected<std::vector<Tensor>> perform(ResourceRequest& request) = 0;

  // All that is committed, as a record: committed to a new resource, it makes it what this one is.
  virtual Expected<Record> whole() const { return Resource::cannot_move(); }
  virtual Status write_record(const Record&, StateWriter&) const { return Resource::cannot_move(); }
  // Of what anybody may have made: what is not right with it is refused, by the reader or with a
  // Status. Reads as much as write_record() wrote.
  virtual Expected<Record> read_record(StateReader&) const { return Resource::cannot_move(); }

 private:
  Expected<Record> read(StateReader& in) const {
    TROUPE_TRY(Record record, read_record(in));
    TROUPE_TRY(in.end());
    return record;
  }
  Expected<std::vector<Tensor>> answer_to(ResourceRequest& request) {
    const std::string& verb = request.external().verb;
    if (verb == kLoadStateVerb) {
      TROUPE_TRY(load_with(request));
      return std::vector<Tensor>{};
    }
    if (verb != kSaveStateVerb) return perform(request);
    TROUPE_TRY(const ResourceState state, save());
    TROUPE_TRY(Tensor bytes, state_tensor(state));
    return std::vector<Tensor>{std::move(bytes)};
  }
  Status load_with(ResourceRequest& request) {
    TROUPE_TRY(const ResourceState state, state_of(request.items.front().operands.at(0)));
    StateReader in(state);
    (void)in.number();  // the commit that it was saved after
    TROUPE_TRY(Record all, read(in));
    return this->load_at_commit(request.attempt.id, 0, std::move(all));
  }
};

}  // namespace troupe
