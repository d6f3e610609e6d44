#include "actors/burst/detail/holders.hpp"

#include <algorithm>
#include <unordered_set>

#include "core/byte_count.hpp"
#include "core/list.hpp"
#include "devices/out_of_memory.hpp"

namespace troupe::burst {
namespace {

constexpr std::size_t kMostTold = 5;
constexpr int kDeepestList = 64;

struct Holder {
  std::uint32_t slot = 0;
  std::uint64_t bytes = 0;
  std::uint64_t values = 0;  // of a list; 0: it is a tensor
};

// Adds up the memory of values, each buffer once.
class Census {
 public:
  explicit Census(const StepAllocator& allocator) : allocator_(allocator) {}

  void visit(std::uint32_t slot, const Tensor& value) {
    Holder holder{.slot = slot};
    if (value.dtype() == DType::list) holder.values = std::uint64_t(list_in(value).size());
    holder.bytes = bytes_of(value, 0);
    if (holder.bytes > 0) holders_.push_back(holder);
  }
  std::vector<Holder> largest() {
    std::stable_sort(holders_.begin(), holders_.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    if (holders_.size() > kMostTold) holders_.resize(kMostTold);
    return std::move(holders_);
  }

 private:
  std::uint64_t bytes_of(const Tensor& value, int depth) {
    if (!value.buffer()) return 0;
    if (value.dtype() != DType::list) {
      const bool counted = allocator_.counts(value.buffer());
      return counted && seen_.insert(value.buffer().data()).second ? value.buffer().size() : 0;
    }
    std::uint64_t bytes = 0;
    if (depth < kDeepestList)
      list_in(value).for_each(
          [&](const Tensor& element) { bytes += bytes_of(element, depth + 1); });
    return bytes;
  }

  const StepAllocator& allocator_;
  std::unordered_set<const void*> seen_;
  std::vector<Holder> holders_;
};

}  // namespace

Holders::Holders(const LoadedPlan& program, Progress& progress, const CallStack& calls)
    : program_(program),
      nodes_(program.nodes()),
      device_(program.device()),
      progress_(progress),
      calls_(calls) {}

void Holders::count(std::shared_ptr<StepMemory> memory) {
  memory_.reset(), host_memory_.reset();
  if (memory) {
    memory_.reset(new StepAllocator(device_.allocator(), memory));
    if (program_.asynchronous())
      host_memory_.reset(new StepAllocator(device_.host_allocator(), memory));
  }
  progress_.place().memory = memory_ ? memory_.get() : nullptr;
  progress_.place().host_memory = host_memory_ ? host_memory_.get() : memory_.get();
}

Allocator& Holders::allocator(MemorySpace space) const {
  const KernelPlace& place = progress_.place();
  if (space == MemorySpace::host)
    return place.host_memory ? *place.host_memory : device_.host_allocator();
  return place.memory ? *place.memory : device_.allocator();
}

Expected<Tensor> Holders::adopt(Tensor tensor) {
  if (!memory_ || !tensor.defined()) return tensor;
  return (host_memory_ ? host_memory_ : memory_)->adopt(std::move(tensor));
}

Expected<Tensor> Holders::adopt_elements(Tensor tensor) {
  if (!memory_ || !tensor.unique()) return tensor;
  List& list = list_in(tensor);
  for (std::int64_t i = 0; i < list.size(); ++i) {
    Tensor element = list.get(i);
    if (!element.buffer()) continue;
    list.set(i, Tensor());  // which lets go of it
    if (element.dtype() == DType::list) {
      TROUPE_TRY(element, adopt_elements(std::move(element)));
    } else {
      TROUPE_TRY(element, adopt(std::move(element)));
    }
    list.set(i, std::move(element));
  }
  return tensor;
}

Status Holders::explain(const Status& failure) {
  if (failure.code() != Code::resource_exhausted) return failure;
  std::uint64_t refused = memory_ ? memory_->take_refusal() : 0;
  if (refused == 0 && host_memory_) refused = host_memory_->take_refusal();
  if (refused == 0) return tell_holders(failure, device_);
  const StepMemory& all = memory_->memory();
  const std::string most = largest();
  return resource_exhausted(
      "the step holds " + byte_count_text(all.used()) + " in this process and wants " +
      byte_count_text(refused) + " more, where it may hold " + byte_count_text(all.limit()) +
      " (step_memory)" + (most.empty() ? "" : "; the most is held by " + most));
}

// Lists come first: what a loop saved stays longer than the slot that it was made in.
std::string Holders::largest() const {
  Census census(*memory_);
  const auto visit_all = [&](bool lists) {
    const auto visit = [&](std::uint32_t slot, const Tensor& value) {
      if (value.buffer() && (value.dtype() == DType::list) == lists) census.visit(slot, value);
    };
    for (std::uint32_t slot = 0; slot < progress_.slots(); ++slot)
      visit(slot, progress_.slot(slot).tensor);
    for (const auto& [slot, value] : calls_.slots) visit(slot, value.tensor);
  };
  visit_all(true);
  visit_all(false);
  std::string text;
  for (const Holder& holder : census.largest()) {
    if (!text.empty()) text += ", ";
    text += byte_count_text(holder.bytes) + " by ";
    const std::uint32_t saved = holder.values > 0 ? saved_in(holder.slot) : kNoNode;
    if (holder.values > 0) text += std::to_string(holder.values) + " values ";
    if (holder.values > 0) text += saved == kNoNode ? "in the list " : "that were saved of ";
    text += maker_of(saved == kNoNode ? holder.slot : saved);
  }
  return text;
}

// The slot whose values a list holds, one for each iteration or call: found by going back from the
// list to the node that pushes onto it. kNoNode if there is none.
std::uint32_t Holders::saved_in(std::uint32_t list) const {
  const Plan& plan = program_.plan();
  std::unordered_set<std::uint32_t> seen;
  for (;;) {
    const bool again = !seen.insert(list).second;
    const std::uint32_t i = list == kNoNode ? kNoNode : program_.producer(list);
    if (i == kNoNode) return kNoNode;
    const LoadedPlan::Node& node = nodes_[i];
    const std::uint32_t k = list - node.first_slot;
    if (node.role == Role::loop_body) {
      // In a loop that pops values, the list's next value leads back here.
      const PlanFrame& frame = plan.frames[node.frame];
      const bool given = again || k >= frame.variables;
      list =
          given ? progress_.input_slot(frame.loop, 1 + k) : progress_.input_slot(frame.next, 1 + k);
    } else if (again || node.inputs == 0) {
      return kNoNode;
    } else if (program_.pushes(i)) {
      return progress_.input_slot(i, 1);
    } else {
      const bool loop = node.role == Role::loop;
      list = loop ? progress_.input_slot(plan.frames[program_.frame_of_loop(i)].next, 1 + k)
                  : progress_.input_slot(i, 0);
    }
  }
}

// "'net/conv' (Conv2D, net.cpp:12)".
std::string Holders::maker_of(std::uint32_t slot) const {
  const std::uint32_t node = program_.producer(slot);
  if (node == kNoNode) return "a value of no node";
  const PlanInfo& info = program_.plan().info[node];
  const std::string site = info.def.site.known() ? ", " + info.def.site.text() : "";
  return "'" + info.name + "' (" + info.def.op + site + ")";
}

}  // namespace troupe::burst
