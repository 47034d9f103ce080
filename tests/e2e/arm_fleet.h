// Fleets with boards of 64-bit ARM that QEMU plays.
#ifndef REGATTA_TESTS_E2E_ARM_FLEET_H_
#define REGATTA_TESTS_E2E_ARM_FLEET_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/fleet.h"

namespace regatta::testing {

// Starts nothing by itself; ends the agents before the fleet.
class ArmFleet : public ::testing::Test {
 protected:
  // What times a board's kernels.
  enum class Time { kInstructions, kWallClock };

  // Skips where something is missing.
  void SetUp() override;
  void TearDown() override;
  // What is not here that the tests need; "": nothing.
  virtual std::string Missing() const;

  // `regatta up` with these options, once its server answers.
  void StartFleet(const std::vector<std::string>& options);
  Fleet& fleet() { return *fleet_; }
  // Of the agent that keeps its state there.
  std::string BuilderKey(const std::string& state);
  // An agent of this machine that builds for others; the key that it signs
  // with.
  std::string StartBuilder();
  // One processor that QEMU plays, with the programs of a folder. `name` is its
  // state's.
  std::vector<std::string> BoardCommand(
      const std::string& name, const std::string& programs,
      const std::string& cpu, Time time,
      const std::vector<std::string>& options) const;
  // Adds --tracker and --state to it.
  void StartAgent(const std::string& name, std::vector<std::string> command);
  void StartBoard(const std::string& name, const std::string& programs,
                  const std::string& cpu, Time time,
                  const std::vector<std::string>& options);
  // All devices, once there are as many and all are probed; null after a test
  // failure.
  Json Devices(size_t count);

 private:
  std::string State(const std::string& name) const;

  std::unique_ptr<Fleet> fleet_;
  TempDir state_;
  std::vector<std::unique_ptr<Process>> agents_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_E2E_ARM_FLEET_H_
