#include "tests/support/race_detector.h"

namespace regatta {

std::string RaceDetector::Conflict(const Access& earlier, const char* what,
                                   const Moment& moment) {
  if (earlier.phase < moment.kernel) return "";
  if (earlier.phase < moment.group) {
    return std::string(what) + " by another group";
  }
  if (earlier.phase < moment.now || earlier.thread == moment.thread) return "";
  return std::string(what) + " by another thread with no barrier between";
}

std::string RaceDetector::Load(int64_t element, const Moment& moment) {
  Cell& cell = cells_[element];
  const bool more =
      cell.load.phase == moment.now && cell.load.thread != moment.thread;
  cell.load = {moment.now, more ? kMany : moment.thread};
  return Conflict(cell.store, "a store", moment);
}

std::string RaceDetector::Store(int64_t element, const Moment& moment) {
  Cell& cell = cells_[element];
  std::string conflict = Conflict(cell.store, "a store", moment);
  if (conflict.empty()) conflict = Conflict(cell.load, "a load", moment);
  cell.store = {moment.now, moment.thread};
  return conflict;
}

}  // namespace regatta
