#include "actors/burst/detail/tickets.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace troupe::burst {
namespace {

constexpr std::size_t kForgetAtFirst = 64;

}  // namespace

Tickets::Tickets(const LoadedPlan& program, Failure& failure)
    : program_(program), failure_(failure) {}

void Tickets::reset() {
  first_wait_ += std::uint32_t(waits_.size());
  waits_.clear();
  new_waits_.clear();
  issued_.clear();
  streams_.clear();
  forget_at_ = kForgetAtFirst;
}

Tickets::StreamView& Tickets::view(std::uint32_t stream) {
  for (StreamView& v : streams_)
    if (v.stream == stream) return v;
  return streams_.emplace_back(StreamView{.stream = stream});
}

bool Tickets::done(const Ticket& ticket) {
  return ticket.complete() || ticket.sequence <= view(ticket.stream).complete;
}

void Tickets::issued(std::uint32_t node, Ticket ticket, std::uint64_t before, Ticket follows) {
  if (ticket.complete()) return;
  StreamView& v = view(ticket.stream);
  if (ticket.sequence <= v.last) return;
  v.last = ticket.sequence;
  issued_.push_back({ticket, node, before, follows});
}

void Tickets::follow(Ticket ticket) {
  StreamView& v = view(ticket.stream);
  v.last = std::max(v.last, ticket.sequence);
}

Ticket Tickets::unfinished() const {
  for (const StreamView& v : streams_)
    if (v.complete < v.last && v.failed == 0) return {v.stream, v.last};
  return {};
}

void Tickets::wait_for(Ticket ticket, std::uint32_t node) {
  for (Wait& wait : waits_)
    if (wait.open && wait.ticket.stream == ticket.stream &&
        wait.ticket.sequence == ticket.sequence) {
      if (node != kNoNode) wait.nodes.push_back(node);
      return;
    }
  new_waits_.push_back({first_wait_ + std::uint32_t(waits_.size()), ticket});
  waits_.push_back({ticket, {}, true});
  if (node != kNoNode) waits_.back().nodes.push_back(node);
}

std::vector<StepWait> Tickets::take_waits() { return std::exchange(new_waits_, {}); }

std::vector<std::uint32_t> Tickets::answered(const WaitAnswer& answer) {
  const std::uint32_t index = answer.wait - first_wait_;
  if (index >= waits_.size() || !waits_[index].open) return {};  // of an earlier step
  waits_[index].open = false;
  const Ticket ticket = waits_[index].ticket;
  std::vector<std::uint32_t> waiting = std::move(waits_[index].nodes);
  if (answer.status.ok())
    for (const Issued& work : issued_)
      if (work.ticket.stream == ticket.stream && work.ticket.sequence <= ticket.sequence &&
          !work.follows.complete()) {
        StreamView& before = view(work.follows.stream);
        before.complete = std::max(before.complete, work.follows.sequence);
      }
  StreamView& v = view(ticket.stream);
  if (answer.status.ok()) {
    v.complete = std::max(v.complete, ticket.sequence);
  } else {
    v.failed = v.failed == 0 ? ticket.sequence : std::min(v.failed, ticket.sequence);
  }
  if (v.failed != 0) find_failure(v, answer.status);
  if (v.failed != 0 || failure_.failing()) return {};
  return waiting;
}

void Tickets::take_waiting(std::vector<std::uint32_t>& to) {
  for (Wait& wait : waits_) {
    to.insert(to.end(), wait.nodes.begin(), wait.nodes.end());
    wait.nodes.clear();
  }
}

bool Tickets::idle() {
  bool idle = true;
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    StreamView& v = streams_[s];
    if (v.complete >= v.last) continue;
    idle = false;
    // While a failed node is being searched for, only the waits of that search count.
    if (v.failed == 0) wait_for({v.stream, v.last}, kNoNode);
  }
  return idle;
}

// A binary search between work known to be good and work known to have failed. A node is not to
// blame if the stream had failed before the node's own work: in an earlier step, or in one that
// uses the device at the same time.
void Tickets::find_failure(StreamView& v, const Status& failure) {
  if (v.complete >= v.last) return;  // found already
  if (!program_.device().locates_failures()) return blame_range(failure);
  if (!failure.ok()) v.failure = failure;
  failure_.stop();
  std::vector<Issued> suspects;
  for (const Issued& work : issued_)
    if (work.ticket.stream == v.stream && work.ticket.sequence > v.complete &&
        work.ticket.sequence <= v.failed)
      suspects.push_back(work);
  if (suspects.size() > 1) return wait_for(suspects[(suspects.size() - 1) / 2].ticket, kNoNode);
  if (suspects.size() == 1 && suspects[0].before > v.complete)
    return wait_for({v.stream, suspects[0].before}, kNoNode);
  v.complete = v.last;  // everything later on the stream failed, too
  if (!suspects.empty()) return failure_.add(suspects[0].node, v.failure);
  failure_.blame_stream(v.failure.in("in other work, after which nothing runs on stream " +
                                     std::to_string(v.stream) + " of " + program_.plan().device));
}

// What failed is among the work that is not known to be done, on whichever stream, of whichever
// step: the device fails as a whole.
void Tickets::blame_range(const Status& failure) {
  const Issued *first = nullptr, *last = nullptr;
  bool of_others = false;
  std::map<std::uint32_t, std::uint64_t> reached;  // of each stream, by this step
  for (const Issued& work : issued_) {
    if (done(work.ticket)) continue;
    if (!first) first = &work;
    last = &work;
    const std::uint64_t complete = view(work.ticket.stream).complete;
    auto& own = reached.try_emplace(work.ticket.stream, complete).first->second;
    of_others |= work.before > own;
    own = work.ticket.sequence;
  }
  for (StreamView& v : streams_) v.complete = v.last;
  if (failure_.failing()) return;
  if (first && first == last && !of_others) return failure_.add(first->node, failure);
  const auto name = [&](const Issued* work) { return program_.plan().info[work->node].name; };
  std::string where = "in other work";
  if (first && first == last) where = "in node '" + name(first) + "' or in other work";
  if (first != last)
    where = "in one of the nodes '" + name(first) + "' to '" + name(last) + "'" +
            (of_others ? " or in other work" : "");
  failure_.blame_stream(failure.in(where + " on " + program_.plan().device));
}

void Tickets::forget_done() {
  if (!program_.asynchronous()) return;
  std::erase_if(issued_, [this](const Issued& work) { return done(work.ticket); });
  const auto open =
      std::find_if(waits_.begin(), waits_.end(), [](const Wait& w) { return w.open; });
  first_wait_ += std::uint32_t(open - waits_.begin());
  waits_.erase(waits_.begin(), open);
}

void Tickets::forget_done_at_times() {
  if (issued_.size() + waits_.size() < forget_at_) return;
  forget_done();
  forget_at_ = 2 * (issued_.size() + waits_.size()) + kForgetAtFirst;
}

}  // namespace troupe::burst
