// What a program of control_program.hpp computes, the slow and obvious way: statement by statement,
// with one list of all arithmetic that was done, over which derivatives are taken backwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/actors/control/control_program.hpp"

namespace troupe::test::control {

struct Inputs {
  double x[2];
  std::int32_t n[2];
  std::vector<double> xs;  // at least one
};

// What outlives a run.
struct Variables {
  double weights[kWeights];
  double states[kStates];
  std::vector<double> queue;  // what there is to take
};

// Mistakes that an implementation might make, made here, so that a comparison has something to
// find.
enum class Fault {
  none,
  one_iteration_more,
  variables_move_one_by_one,
  out_of_range_takes_first,
  other_branch_writes,
  lists_are_shared,
  reads_see_the_snapshot,
  reads_in_loops_see_what_was_before,
  invariants_count_once,  // their gradients, of the last iteration alone
  no_gradient_of_lists,
  prints_in_loops_happen_again,
  draws_are_lost_in_branches,
  puts_overtake,
  takes_the_newest,
  calls_go_one_deeper,
  four_turn_too_far,
};
inline constexpr Fault kFaults[] = {
    Fault::one_iteration_more,
    Fault::variables_move_one_by_one,
    Fault::out_of_range_takes_first,
    Fault::other_branch_writes,
    Fault::lists_are_shared,
    Fault::reads_see_the_snapshot,
    Fault::invariants_count_once,
    Fault::no_gradient_of_lists,
    Fault::reads_in_loops_see_what_was_before,
    Fault::prints_in_loops_happen_again,
    Fault::draws_are_lost_in_branches,
    Fault::puts_overtake,
    Fault::takes_the_newest,
    Fault::calls_go_one_deeper,
    Fault::four_turn_too_far,
};

// Where a statement stands.
struct Standing {
  std::size_t functions = 0;  // that it may call
  bool in_function = false;
};

// What happened to a loop in a run.
struct LoopSeen {
  Standing standing;
  int trips = 0;   // the most
  int nested = 1;  // loops open at a time from this one on
};

// What happened in a run: a test that never sees some of it proves little.
struct Seen {
  int deepest_loop = 0;
  int dead_loops = 0;  // loops in branches that were not taken
  int no_trips = 0;
  int lists_in_loops = 0;  // writes to lists
  int writes_in_branches = 0;
  int writes_in_loops = 0;
  int reads_after_writes = 0;
  int reads_in_loops = 0;  // of what was written
  int calls_in_loops = 0;
  int out_of_range = 0;  // of choose
  int branches_in_loops = 0;
  int gradients_through_loops = 0;  // arithmetic in loops that y depends on
  int prints_in_loops = 0;
  int draws_in_loops = 0;
  int queues_in_loops = 0;
  int takes = 0;
  int deepest_call = 0;    // of a function by itself
  int fours_in_loops = 0;  // shapes that only a run knows
  int fours_in_calls = 0;
  std::map<const Statement*, LoopSeen> loops;
  std::map<const Statement*, Standing> differentiated;  // y depends on their arithmetic
};

struct Slope {
  double value = 0;
  double size = 0;  // the sum of the absolute values of what it is the sum of
};

struct Ran {
  bool sound = true;  // false: too long, or with numbers too large to compare
  std::vector<std::vector<double>> results;  // of main; a scalar is one
  Slope x[2], weights[kWeights];             // of the sum of the results that are no integers
  std::vector<Slope> xs;
  // By number (numbered()): what was printed, as text, and how often it was drawn. Calls of one
  // function follow one another in no order.
  std::map<int, std::vector<std::string>> prints;
  std::map<int, int> draws;
  std::vector<double> puts;  // into the queue, in this order
  Seen seen;
};

// Writes what the program writes, and takes what it takes. What is drawn is nothing but counted.
Ran interpret(const Program& program, const Inputs& inputs, Variables& variables,
              Fault fault = Fault::none);

}  // namespace troupe::test::control
