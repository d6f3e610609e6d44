// What actors see of the network: where to send what is for another process. No CAF in here; the
// implementation that owns a Transport is in runtime/net_hub.hpp.
#pragma once

#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"
#include "serialization/messages.hpp"
#include "serialization/tensor_tag.hpp"

namespace troupe {

// A channel that ends in this process and begins at a task in another.
struct InboundChannel {
  ChannelId channel = 0;
  TaskId from{};
  std::uint32_t partition = 0;  // the receiving one
  DType dtype = DType::invalid;
  PartialShape shape;
  bool loops = false;  // may carry more than one element an attempt
};

// Thread-safe; never blocks. Called from lanes the moment a tensor is done.
class Hub {
 public:
  virtual ~Hub() = default;
  // Pushes a channel's element to the executor of `tag.partition` at the task, in whichever process
  // hosts it. The tensor is in host memory and is held until it is sent. A peer that is down
  // swallows it: its loss ends the attempt.
  virtual void send_tensor(TaskId to, const TensorTag& tag, Tensor tensor) = 0;

  // What may arrive for a compiled step; anything else closes the peer that sent it. Called before
  // the step's StepLoaded, so before any of its tensors can be on their way.
  virtual void expect(CompiledId compiled, std::vector<InboundChannel> channels) = 0;
  virtual void forget(CompiledId compiled) = 0;
  // Attempts that are over: their tensors are dropped.
  virtual void live(const LiveList& list) = 0;

  // Ends the connection to a process, which is told why, and so does this process's part in the job
  // if that was the master.
  virtual void close(ProcessId process, Status why) = 0;
};

}  // namespace troupe
