// All partitions of one step, what is on its way between them, and the queues and variables that
// they ask. They run one burst at a time, on one thread, in an order that a test chooses.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/burst/step_state.hpp"
#include "core/hash.hpp"
#include "ops/compile_host.hpp"
#include "tests/protocol/loop_examples.hpp"

namespace troupe::test::loops {

inline const Devices kAlone{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:0",
                            "/job:local/task:0/cpu:0"};
inline const Devices kSpread{"/job:local/task:0/cpu:0", "/job:local/task:0/cpu:1",
                             "/job:local/task:1/cpu:0"};

// What a step finds around it, by name.
struct Surroundings {
  struct Queue {
    std::deque<Tensor> elements;
    bool endless = false;  // behind them come others, each with its number
  };
  std::map<std::string, Queue> queues;
  std::map<std::string, Tensor> variables;
};

// What a run did: to each queue and each variable, and at each Print, in order.
struct Effect {
  std::string what;
  Tensor value;
};
using Effects = std::map<std::string, std::vector<Effect>>;

struct Outcome {
  std::vector<Tensor> fetched;
  Effects effects;
};

// A queue of f64 scalars, and the next of them.
Output queue_on(Graph& g, const std::string& device, const std::string& name);
Output taken_from(const Output& queue);

// Two outcomes have the same bits.
void check_same(const Outcome& got, const Outcome& expected);

// What a message is. A predicate says whether there is another iteration, the first one whether
// there is any; an end, that a part is done with one; an order is a control edge between nodes of
// the program.
enum class MessageKind { value, first, predicate, end, order };

// The channels of a kind, and what went over them in one run.
struct Traffic {
  std::size_t channels = 0, messages = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

class SpreadStep {
 public:
  SpreadStep(const GraphDef& graph, const CompileRequest& request, const Devices& devices,
             Surroundings world = {});
  SpreadStep(const SpreadStep&) = delete;
  SpreadStep& operator=(const SpreadStep&) = delete;
  ~SpreadStep();

  // What can happen next: a burst of a partition, that a message arrives there, or that what it
  // asked for is done and answered.
  struct Action {
    std::uint32_t partition = 0;
    std::optional<std::size_t> message = {};  // the place among those on their way, oldest first
    std::optional<std::size_t> request = {};  // the place among those that are open, oldest first
    bool burst() const { return !message && !request; }
  };
  using Choose = std::function<std::size_t(const std::vector<Action>&)>;

  Outcome run(const Choose& choose);
  // A run that is called off after so many actions, if it is not over by then: what is on its way
  // is lost, and what it did does not count.
  void run_in_part(const Choose& choose, std::size_t actions);

  std::size_t size() const { return parts_.size(); }
  // Of the last run: all messages, and the most of one channel that were on their way at once.
  std::size_t messages() const { return messages_; }
  std::size_t most_of_a_channel() const { return most_; }
  std::size_t actions() const { return actions_; }

  // --- kinds of messages ---

  // The parts of one loop are connected by the channels that carry in its iterations.
  struct Loop {
    std::size_t parts = 0, iterations = 0;  // of the last run, on each part
    std::vector<std::string> prints;        // the messages of the Prints in its body
    std::map<MessageKind, Traffic> inside;
  };
  // Of the last run. Fails the test unless each channel in a loop carried one message for each of
  // its iterations, with_number from 1, and each other channel one.
  std::vector<Loop> loops() const;
  // The channels that are in no loop.
  std::map<MessageKind, Traffic> outside() const;
  // Ports and nodes that nodes on other devices read or come after, once for each device, as the
  // program is when loops have got their parts: counted without regard to how it was cut.
  std::size_t crossing_ports() const { return crossing_ports_; }
  std::size_t crossing_controls() const { return crossing_controls_; }

 private:
  struct Part;
  struct Message {
    std::uint32_t to = 0;
    ChannelId channel = 0;
    Tag tag;
    Tensor tensor;
    bool dead = false;
  };
  struct Asked {
    std::uint32_t partition = 0;
    StepRequest request;
  };

  void count_crossings(const GraphDef& graph);
  void add(Plan plan);
  void find_kinds();
  bool run(const Choose& choose, std::size_t most_actions, Outcome& outcome);
  void call_off(const std::vector<bool>& over);
  void send(ChannelId channel, const Tag& tag, Tensor tensor, bool dead);
  void deliver(std::size_t which, const std::vector<bool>& over);
  bool can_be_answered(const Asked& asked) const;
  void answer(std::size_t which);
  void answer(const Plan& plan, const StepRequest& request, const RequestItem& item,
              std::vector<Tensor>& out);
  Tensor take_from(const std::string& queue);

  CompileHost host_;
  std::vector<std::unique_ptr<Device>> devices_;
  CompiledGraph compiled_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<MessageKind> kinds_;  // by channel
  std::size_t crossing_ports_ = 0, crossing_controls_ = 0;
  const Surroundings world_;

  // Of the run at hand.
  Surroundings now_;
  Effects effects_;
  std::vector<Message> way_;
  std::vector<Asked> asked_;
  std::vector<std::size_t> sent_;    // by channel
  std::vector<std::size_t> on_way_;  // by channel
  std::size_t messages_ = 0, most_ = 0, actions_ = 0;
};

SpreadStep spread_over(const Make& make, const Devices& on, const Surroundings& world = {});
// What all of it does on one device.
Outcome on_one(const Make& make, const Surroundings& world = {});

SpreadStep::Choose at_random(Random& random);

// The last one for which that holds; if there is none, the first action.
template <class F>
SpreadStep::Choose last_where(F holds) {
  return [holds](const std::vector<SpreadStep::Action>& actions) {
    for (std::size_t i = actions.size(); i-- > 0;)
      if (holds(actions[i])) return i;
    return std::size_t{0};
  };
}

// Random orders, and some that are as uneven as can be; every eighth run is a second attempt,
// behind one that is called off somewhere.
void check_orders(SpreadStep& spread, const Outcome& expected, Random& random, int rounds);

}  // namespace troupe::test::loops
