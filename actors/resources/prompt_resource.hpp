// The base of resources that answer every request at once.
#pragma once

#include <utility>
#include <vector>

#include "actors/resources/participant.hpp"
#include "actors/resources/resource.hpp"

namespace troupe {

// A kind says what its verbs do, and what Participant asks of its logs and records.
template <class Log, class Record>
class PromptResource : public Resource, protected Participant<Log, Record, Resource::Output> {
 public:
  void ask(std::uint64_t id, ResourceRequest& request, Outputs& out) final {
    const AttemptInfo& attempt = request.attempt;
    this->learn(attempt.snapshot, out);
    Expected<std::vector<Tensor>> result = aborted("attempt " + attempt.id.text() + " is over");
    if (!this->live_.over(attempt.id)) result = carry_out(request);
    ResourceReply reply{id, result.status()};
    if (result.ok()) reply.values = std::move(result).value();
    out.push_back(std::move(reply));
    this->try_stage(out);
  }
  void stage(const StageRequest& request, Outputs& out) final {
    Participant<Log, Record, Output>::stage(request, out);
  }
  void live(const LiveList& list, Outputs& out) override { this->note(list, out); }

 protected:
  // Of an attempt that is not over. The outputs of the request's items.
  virtual Expected<std::vector<Tensor>> carry_out(ResourceRequest& request) = 0;
};

}  // namespace troupe
