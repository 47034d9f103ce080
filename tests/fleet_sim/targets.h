// What is wanted of the daemons beside what was measured. A target that is
// missed breaks no promise: it is said, and the run goes on.
#ifndef REGATTA_TESTS_FLEET_SIM_TARGETS_H_
#define REGATTA_TESTS_FLEET_SIM_TARGETS_H_

#include <string>
#include <vector>

namespace regatta::fleet_sim {

class Targets {
 public:
  void AtMost(const std::string& what, double wanted, double got,
              const std::string& unit);
  void AtLeast(const std::string& what, double wanted, double got,
               const std::string& unit);
  // A row for each, in order, and which were missed.
  void Print() const;

 private:
  struct Target {
    std::string what, wanted, got;
    bool met = false;
  };
  std::vector<Target> targets_;
};

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_TARGETS_H_
