// The base of resources that answer every request immediately.
#pragma once

#include <utility>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// A kind implements its verbs and the virtual functions of Participant. A kind that can be saved
// also writes and reads records, and makes the record that turns a new resource into this one; see
// tests/outside/stack.cpp.
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
  // A kind that does more with a list also says more precisely when it is at rest.
  void live(const LiveList& list, Outputs& out) override { this->note(list, out); }
  bool at_rest() const override { return Participant<Log, Record, Output>::at_rest(); }

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
  // The outputs of the request's items. The attempt is not over.
  virtual Expected<std::vector<Tensor>> perform(ResourceRequest& request) = 0;

  // The committed state as a record: committed to a new resource, it makes that equal to this one.
  virtual Expected<Record> whole() const { return Resource::cannot_move(); }
  virtual Status write_record(const Record&, StateWriter&) const { return Resource::cannot_move(); }
  // Reads exactly what write_record() wrote. The input is not trusted: invalid input is refused, by
  // the reader or with a Status.
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
    (void)in.number();  // its commit number
    TROUPE_TRY(Record all, read(in));
    return this->load_at_commit(request.attempt.id, 0, std::move(all));
  }
};

}  // namespace troupe
