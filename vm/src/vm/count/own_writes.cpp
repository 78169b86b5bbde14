// Compares the bytes of reads with those of writes before them.
#include "vm/count/own_writes.h"

#include <algorithm>
#include <optional>

#include "vm/count/overwritten.h"

namespace halyard::vm {

void OwnWrites::add(uint32_t binding, uint64_t size, const Form& offset) {
  if (writes_.size() == kMaxWrites) return;
  const uint32_t varies = offset.dimensions();
  writes_.push_back({.binding = binding,
                     .size = size,
                     .open = offset.along(varies),
                     .closed = {.begin = offset.without(varies).first()}});
}

void OwnWrites::end_loop(Mark mark, int dimension, const Trips& trips) {
  const auto cannot_close = [&](Write& write) {
    const std::optional<Form::Steps> steps = write.open.along(1u << dimension).steps(trips);
    if (!steps || write.closed.count + steps->count > write.closed.steps.size()) return true;
    std::copy_n(steps->steps.begin(), steps->count,
                write.closed.steps.begin() + static_cast<ptrdiff_t>(write.closed.count));
    write.closed.count += steps->count;
    write.open = write.open.without(1u << dimension);
    return false;
  };
  const auto begin = writes_.begin() + static_cast<ptrdiff_t>(mark);
  writes_.erase(std::remove_if(begin, writes_.end(), cannot_close), writes_.end());
}

bool OwnWrites::cover(uint32_t binding, uint64_t size, const Form& offset, const Trips& trips) const {
  for (size_t i = 0; i < writes_.size(); ++i) {
    const Form& open = writes_[i].open;
    if (writes_[i].binding != binding || offset.along(open.dimensions()) != open) continue;
    // The read and these writes are in the same workgroup and iteration of the loops of `open`.
    const std::optional<Form::Steps> rest = offset.without(open.dimensions()).steps(trips);
    if (!rest) continue;
    Overwritten written(kMaxRuns);
    for (size_t j = i; j < writes_.size(); ++j)
      if (writes_[j].binding == binding && writes_[j].open == open)
        written.add(binding, writes_[j].size, writes_[j].closed);
    Overwritten with_read = written;
    with_read.add(binding, size, *rest);
    const auto before = written.ranges();
    if (before && before == with_read.ranges()) return true;
  }
  return false;
}

}  // namespace halyard::vm
