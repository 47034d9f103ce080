#include "tests/e2e/arm_fleet.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace regatta::testing {

void ArmFleet::SetUp() {
  if (const std::string missing = Missing(); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
}

void ArmFleet::TearDown() {
  for (const auto& agent : agents_) agent->Signal(SIGTERM);
  for (const auto& agent : agents_) {
    const ProcessResult ended = agent->Wait(absl::Seconds(20));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
  }
}

std::string ArmFleet::Missing() const { return REGATTA_ARM_MISSING; }

void ArmFleet::StartFleet(const std::vector<std::string>& options) {
  fleet_ = std::make_unique<Fleet>(options);
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return !fleet_->server().empty();
  })) << fleet_->Logs();
}

std::string ArmFleet::State(const std::string& name) const {
  return absl::StrCat(state_.path(), "/", name);
}

std::string ArmFleet::BuilderKey(const std::string& state) {
  const ProcessResult key = RunProcess(
      {Program("regatta-agent"), "--state", state, "--print-builder-key"}, {},
      absl::Seconds(20));
  EXPECT_EQ(key.exit_code, 0) << key.err;
  return std::string(absl::StripAsciiWhitespace(key.out));
}

std::string ArmFleet::StartBuilder() {
  std::string key = BuilderKey(State("builder"));
  StartAgent("builder", {Program("regatta-agent"), "--role", "builder"});
  return key;
}

std::vector<std::string> ArmFleet::BoardCommand(
    const std::string& name, const std::string& programs,
    const std::string& cpu, Time time,
    const std::vector<std::string>& options) const {
  const std::string plugin =
      time == Time::kInstructions ? " -plugin " REGATTA_INSTRUCTION_COUNT : "";
  std::vector<std::string> argv = {
      REGATTA_QEMU,
      "-cpu",
      cpu,
      "-L",
      "/",
      programs + "/regatta-agent",
      "--tracker",
      fleet_->tracker(),
      "--state",
      State(name),
      "--cores",
      "0",
      "--exec-prefix",
      absl::StrCat(REGATTA_QEMU " -cpu ", cpu, " -L /", plugin)};
  argv.insert(argv.end(), options.begin(), options.end());
  return argv;
}

void ArmFleet::StartAgent(const std::string& name,
                          std::vector<std::string> command) {
  command.insert(command.end(),
                 {"--tracker", fleet_->tracker(), "--state", State(name)});
  agents_.push_back(std::make_unique<Process>(command, Environment{}));
}

void ArmFleet::StartBoard(const std::string& name, const std::string& programs,
                          const std::string& cpu, Time time,
                          const std::vector<std::string>& options) {
  agents_.push_back(std::make_unique<Process>(
      BoardCommand(name, programs, cpu, time, options), Environment{}));
}

Json ArmFleet::Devices(size_t count) {
  Json found;
  const auto ended = [&] {
    return std::any_of(agents_.begin(), agents_.end(),
                       [](const auto& agent) { return !agent->Running(); });
  };
  const bool there = WaitFor(absl::Seconds(120), [&] {
    if (ended()) return true;
    const ProcessResult result = fleet_->Run({"devices", "--json"});
    if (result.exit_code != 0) return false;
    const Json devices = Json::parse(result.out)["devices"];
    if (devices.size() == count &&
        std::all_of(devices.begin(), devices.end(), [](const Json& device) {
          return device["health"] != "probing";
        })) {
      found = devices;
    }
    return !found.is_null();
  });
  EXPECT_TRUE(there) << fleet_->Run({"devices"}).out << fleet_->Logs();
  for (const auto& agent : agents_) {
    if (!agent->Running()) ADD_FAILURE() << agent->Wait(absl::Seconds(1)).err;
  }
  return found;
}

}  // namespace regatta::testing
