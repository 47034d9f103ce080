// Who touched which element last, for the loop interpreter.
#ifndef REGATTA_TESTS_SUPPORT_RACE_DETECTOR_H_
#define REGATTA_TESTS_SUPPORT_RACE_DETECTOR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

// Time is counted in phases: one ends at every barrier and at the end of every
// group. Two accesses of one element race when a barrier or the end of a kernel
// does not part them, unless they are one thread's or both loads.
class RaceDetector {
 public:
  RaceDetector() = default;
  explicit RaceDetector(int64_t elements) : cells_(elements) {}

  // Phases [kernel, group) are those of earlier groups of the running kernel,
  // [group, now) earlier ones of this group; a thread's number is unique in its
  // group.
  struct Moment {
    int64_t kernel = 0;
    int64_t group = 0;
    int64_t now = 0;
    int thread = 0;
  };

  // What the access races with ("a store by another thread"), or "".
  std::string Load(int64_t element, const Moment& moment);
  std::string Store(int64_t element, const Moment& moment);

 private:
  struct Access {
    int64_t phase = -1;
    int thread = -1;  // kMany: several
  };
  struct Cell {
    Access store;
    Access load;
  };
  static constexpr int kMany = -2;

  static std::string Conflict(const Access& earlier, const char* what,
                              const Moment& moment);

  std::vector<Cell> cells_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_RACE_DETECTOR_H_
