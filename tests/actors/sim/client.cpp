#include "tests/actors/sim/client.hpp"

#include <fmt/format.h>

#include <caf/send.hpp>
#include <type_traits>

#include "actors/inline_send.hpp"

namespace troupe::test {

template <class Message>
std::shared_ptr<Call> Client::send(Message message) {
  message.call = std::make_shared<Call>();
  auto call = message.call;
  if (inline_ && std::is_same_v<Message, RunStep>)
    send_inline(master_, std::move(message));
  else
    caf::anon_send(master_, std::move(message));
  return call;
}

Client::Client(MasterActor master, std::uint64_t session, GraphBuilder& graph, int replicas)
    : master_(std::move(master)), session_(session), graph_(graph), replicas_(replicas) {
  script_.push_back({"open", [this] { return send(OpenSession{session_, nullptr}); }, {}});
  script_.push_back({"extend",
                     [this] {
                       return send(ExtendSession{session_, graph_.snapshot(), nullptr});
                     },
                     {}});
}

Client& Client::init() {
  std::vector<Op> targets;
  for (NodeId node : graph_.initializers()) targets.push_back(graph_.find(graph_.node(node).name));
  return compile("init", {}, std::move(targets), 1).run("init");
}

Client& Client::compile(std::string name, std::vector<Output> fetches, std::vector<Op> targets,
                        int replicas) {
  CompileRequest request;
  request.replicas = replicas > 0 ? replicas : replicas_;
  for (const Output& o : fetches)
    request.fetches.push_back({graph_.node(o.node()).name, int(o.port().index), false});
  for (const Op& op : targets) request.targets.push_back(op.name());
  script_.push_back({"compile " + name,
                     [this, request] {
                       return send(CompileStep{session_, request, nullptr});
                     },
                     [this, name](CallResult& result) { compiled_[name] = result.compiled; }});
  return *this;
}

Client::Action Client::make_run(std::string name, Instant timeout) {
  auto begin = [this, name, timeout] {
    RunStep message;
    message.run = {session_, next_run_};
    message.compiled = compiled_.at(name);
    message.timeout = timeout;
    message.acknowledged = {next_run_++, {}};
    return send(std::move(message));
  };
  auto end = [this](CallResult& result) {
    ended_.push_back(result.status);
    fetched_.push_back(std::move(result.fetches));
  };
  return {"run " + name, begin, end};
}

Client& Client::run(std::string name, int times) {
  for (int i = 0; i < times; ++i) script_.push_back(make_run(name, kNever));
  return *this;
}

Client& Client::try_run(std::string name, Instant timeout) {
  script_.push_back(make_run(std::move(name), timeout));
  script_.back().may_fail = true;
  return *this;
}

Client& Client::reset(std::vector<std::string> containers) {
  script_.push_back({"reset",
                     [this, containers] {
                       ResetContainers message;
                       message.containers = containers;
                       message.action = {session_, next_run_};
                       message.acknowledged = {next_run_++, {}};
                       return send(std::move(message));
                     },
                     {}});
  return *this;
}

Client& Client::then(std::function<void()> what) {
  script_.push_back({"go on",
                     [what = std::move(what)] {
                       what();
                       auto call = std::make_shared<Call>();
                       call->finish({});
                       return call;
                     },
                     {}});
  return *this;
}

Client& Client::close() {
  script_.push_back({"close", [this] { return send(CloseSession{session_, nullptr}); }, {}});
  return *this;
}

void Client::step() {
  Action& action = script_.front();
  if (!call_) {
    call_ = action.begin();
    return;
  }
  auto call = std::move(call_);
  call_ = nullptr;
  if (!action.may_fail) status_ = call->result().status;
  if (status_.ok() && action.end) action.end(call->result());
  script_.pop_front();
}

std::string Client::text() const {
  if (finished()) return fmt::format("session {} is done", session_);
  return fmt::format("session {} {} '{}'", session_, call_ ? "waits for" : "is about to",
                     script_.front().what);
}

std::string Client::fetched_bytes() const {
  std::string bytes;
  for (const auto& run : fetched_)
    for (const Tensor& t : run) bytes.append(static_cast<const char*>(t.raw()), t.bytes());
  return bytes;
}

}  // namespace troupe::test
