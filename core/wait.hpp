// What a run waits for, as data.
#pragma once

#include <optional>
#include <string>

namespace troupe {

// One thing that a run waits for at one moment (Session::waits). A run that waits at several places
// has several.
struct Wait {
  enum class On {
    node,      // a kernel that computes
    lane,      // a compute thread of the device
    device,    // work of an asynchronous device
    resource,  // a container of variables, a dataset, a file
    queue,     // a queue that somebody has to fill or to empty
    tensor,    // what another device or process has to compute or send
    commit,    // its writes to be applied, or the rest of the step before that
    turn,      // other runs: it has not begun, or wants the number that another one has
    task,      // the process that hosts a task, which does not say what it does
    lost,      // a process that knows nothing of the run: a message between processes was lost
    compile,   // the graph to be compiled and loaded
  };
  On on = On::node;
  std::string run;             // "step 12 of session 0"; of On::compile what is compiled
  std::string node, op, site;  // empty: it is no node that waits
  std::string device;          // where; empty: at the master
  std::string task;            // On::task, On::lost: "1 at 127.0.0.1:4711"
  std::string what;            // whom or what it waits for, in words: "queue 'q', which is empty"
  double seconds = 0;          // so long; On::node: since it, or one of 16 before it, began
  double age = 0;              // of the run: since it was asked for
  std::optional<double> left = {};  // until the run's timeout passes

  // "step 12 of session 0 waits 4.2 s for queue 'q', which is empty, in node 'next' (Dequeue) at
  // prog.cpp:41 on /job:worker/task:0/cpu:0"
  std::string text() const;
};

// "node", "resource", ...: for programs that read it.
const char* name_of(Wait::On on);

}  // namespace troupe
