// Whether a resource has to be told of LiveLists.
#pragma once

namespace troupe {

// Where there are many resources, most are at rest. One that is used asks its shard for the lists:
// it gets the last one at once, then all that follow. When it has been at rest from one list to the
// next, it asks for no more; so one that every step uses does not ask again and again. A list that
// it was not told of would have changed nothing. Part of the resource's actor.
class ListWish {
 public:
  // After an input other than a list. True: ask for the lists.
  bool used(bool at_rest) {
    used_ = true;
    if (wished_ || at_rest) return false;
    return wished_ = true;
  }
  // After a list. True: ask for no more.
  bool told(bool at_rest) {
    const bool used = used_;
    used_ = !at_rest;
    if (!wished_ || used || !at_rest) return false;
    wished_ = false;
    return true;
  }

 private:
  bool wished_ = false;
  bool used_ = false;  // since the last list
};

}  // namespace troupe
