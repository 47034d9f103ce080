#include "compiler/ptxsim/shared_races.h"

#include <algorithm>
#include <bit>

namespace regatta::ptxsim {

SharedRaces::SharedRaces(uint64_t bytes, uint32_t granule)
    : shift_(std::countr_zero(granule)),
      cells_((bytes + granule - 1) / granule) {}

void SharedRaces::Reset() { std::fill(cells_.begin(), cells_.end(), Cell{}); }

inline Conflict SharedRaces::Touch(Cell& cell, bool write, Stamp stamp,
                                   const Clock& now) {
  const uint32_t thread = StampThread(stamp);
  const auto races_with = [&](Stamp other) {
    return !RaceClocks::Ordered(other, now, thread) &&
           (stamp & other & kStampStrong) == 0;
  };
  if (races_with(cell.write)) return {cell.write, true};
  if (write) {
    if (races_with(cell.first_read)) return {cell.first_read, false};
    if (races_with(cell.other_read)) return {cell.other_read, false};
    cell.write = stamp;
  } else if (RaceClocks::Ordered(cell.first_read, now, thread)) {
    cell.first_read = stamp;
  } else {
    cell.other_read = stamp;
  }
  return {};
}

Conflict SharedRaces::Access(uint64_t address, uint32_t bytes, AccessKind kind,
                             Stamp stamp, const Clock& now) {
  Cell* cell = &cells_[address >> shift_];
  Cell* const end = &cells_[(address + bytes - 1) >> shift_] + 1;
  for (; cell != end; ++cell) {
    const Conflict conflict = Touch(*cell, IsWrite(kind), stamp, now);
    if (conflict) return conflict;
  }
  return {};
}

Conflict SharedRaces::StartCopy(uint64_t address, uint32_t bytes, Stamp stamp,
                                const Clock& now) {
  const Conflict conflict =
      Access(address, bytes, AccessKind::kWrite, stamp, now);
  if (conflict) return conflict;
  LandCopy(address, bytes,
           MakeStamp(kPendingClock, StampPc(stamp), false, StampThread(stamp)));
  return {};
}

void SharedRaces::LandCopy(uint64_t address, uint32_t bytes, Stamp stamp) {
  const uint64_t last = (address + bytes - 1) >> shift_;
  for (uint64_t i = address >> shift_; i <= last; ++i) cells_[i].write = stamp;
}

}  // namespace regatta::ptxsim
