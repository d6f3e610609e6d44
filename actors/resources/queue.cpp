#include "actors/resources/queue.hpp"

#include <algorithm>

namespace troupe {
namespace {

using Item = ResourceRequest::Item;

void enqueue(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  queue.enqueue(std::move(request), std::move(item.operands), out);
}
void enqueue_many(QueueState& queue, QueueState::Request request, Item& item,
                  QueueState::Outputs& out) {
  queue.enqueue_many(std::move(request), item.operands, out);
}
void dequeue(QueueState& queue, QueueState::Request request, Item&, QueueState::Outputs& out) {
  queue.dequeue(std::move(request), out);
}
// A computed value may have any shape.
void dequeue_batch(QueueState& queue, QueueState::Request request, const Item& item, bool up_to,
                   QueueState::Outputs& out) {
  const Tensor& n = item.operands.at(0);
  if (n.dtype() == DType::i64 && n.rank() == 0)
    return queue.dequeue_many(std::move(request), n.item<std::int64_t>(), up_to, out);
  out.push_back(ResourceReply{
      request.id, invalid_argument("n must be an i64 scalar, not " +
                                   std::string(dtype_name(n.dtype())) + n.shape().text())});
}
void dequeue_many(QueueState& queue, QueueState::Request request, Item& item,
                  QueueState::Outputs& out) {
  dequeue_batch(queue, std::move(request), item, false, out);
}
void dequeue_up_to(QueueState& queue, QueueState::Request request, Item& item,
                   QueueState::Outputs& out) {
  dequeue_batch(queue, std::move(request), item, true, out);
}
void close(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  const Attr& cancel_pending = item.node->def.attrs.find("cancel_pending")->second;
  queue.close(std::move(request), *cancel_pending.get<bool>(), out, item.node->replica >= 0);
}
void save(QueueState& queue, QueueState::Request request, Item&, QueueState::Outputs& out) {
  queue.save_for(std::move(request), out);
}
void load(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  queue.load_for(std::move(request), item.operands.at(0), out);
}
void look(QueueState& queue, QueueState::Request request, Item& item, QueueState::Outputs& out) {
  queue.look(std::move(request), item.node->external->look, out);
}

// External::verb of the ops that change a queue: QueueState knows each, since it stages, commits
// and undoes them. An op that only looks has no verb but a function (External::look).
struct Verb {
  std::string_view name;
  void (*ask)(QueueState&, QueueState::Request, Item&, QueueState::Outputs&);
};
constexpr Verb kVerbs[] = {{"enqueue", enqueue},
                           {"enqueue_many", enqueue_many},
                           {"dequeue", dequeue},
                           {"dequeue_many", dequeue_many},
                           {"dequeue_up_to", dequeue_up_to},
                           {"close", close},
                           {kSaveStateVerb, save},
                           {kLoadStateVerb, load}};

// The operation of the verb; null if queues have none.
decltype(Verb::ask) asked_for(const External& external) {
  if (external.look) return look;
  auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                           [&](const Verb& v) { return v.name == external.verb; });
  return verb == std::end(kVerbs) ? nullptr : verb->ask;
}

class Queue final : public Resource {
 public:
  explicit Queue(QueueSpec spec) : state_(std::move(spec)) {}

  void ask(std::uint64_t id, ResourceRequest& request, Outputs& out) override {
    auto ask = asked_for(request.external());
    if (!ask) {
      const std::string& wanted = request.external().verb;
      out.push_back(
          ResourceReply{id, unimplemented("a queue cannot be asked to '" + wanted + "'")});
      return;
    }
    Item& item = request.items.front();
    ask(state_, {id, request.attempt, item.key}, item, out);
  }
  void stage(const StageRequest& request, Outputs& out) override { state_.stage(request, out); }
  void live(const LiveList& list, Outputs& out) override { state_.live(list, out); }
  bool at_rest() const override { return state_.at_rest(); }
  Expected<ResourceState> save() const override { return state_.save(); }
  Status load(const ResourceState& state) override { return state_.load(state); }
  Expected<ResourceState> record() const override { return state_.record(); }
  Status stage_record(const ResourceState& state, Outputs& out) override {
    return state_.stage_record(state, out);
  }

 private:
  QueueState state_;
};

}  // namespace

Expected<QueueSpec> queue_spec(const ResourceRef& resource) {
  QueueSpec spec;
  spec.name = resource.name;
  auto attr = [&](const char* name) -> const Attr* {
    auto it = resource.def.attrs.find(name);
    return it == resource.def.attrs.end() ? nullptr : &it->second;
  };
  auto number = [&](const char* name) {
    const Attr* found = attr(name);
    const auto* value = found ? found->get<std::int64_t>() : nullptr;
    return value ? *value : 0;
  };
  if (resource.def.op == "RandomShuffleQueue") spec.order = QueueSpec::Order::shuffle;
  if (resource.def.op == "PriorityQueue") spec.order = QueueSpec::Order::priority;
  spec.padded = resource.def.op == "PaddingFIFOQueue";
  spec.min_after_dequeue = number("min_after_dequeue");
  spec.seed = std::uint64_t(number("seed"));
  const Attr* capacity = attr("capacity");
  const Attr* types = attr("types");
  const Attr* shapes = attr("shapes");
  if (!capacity || !capacity->get<std::int64_t>() || !types || !types->get<std::vector<DType>>())
    return invalid_argument("node '" + resource.def.name + "' does not describe a queue");
  spec.capacity = *capacity->get<std::int64_t>();
  spec.dtypes = *types->get<std::vector<DType>>();
  if (shapes && shapes->get<std::vector<PartialShape>>())
    spec.shapes = *shapes->get<std::vector<PartialShape>>();
  TROUPE_TRY(spec.check().at(resource.def.site).in("in node '" + resource.def.name + "'"));
  return spec;
}

ResourceKind queue_kind() {
  return {.name = "queue",
          .make = [](const ResourceRef& ref) -> Expected<std::unique_ptr<Resource>> {
            TROUPE_TRY(QueueSpec spec, queue_spec(ref));
            return std::unique_ptr<Resource>(std::make_unique<Queue>(std::move(spec)));
          },
          .agree = [](const ResourceRef& known, const ResourceRef& other) -> Status {
            TROUPE_TRY(QueueSpec first, queue_spec(known));
            TROUPE_TRY(QueueSpec second, queue_spec(other));
            return QueueState(std::move(first)).compatible(second);
          }};
}

}  // namespace troupe
