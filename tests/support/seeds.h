// Seeds of random histories: how many a test runs, and how one is run again.
//
// REGATTA_TEST_SCALE multiplies their number; REGATTA_SIM_SEED=N runs the one
// alone, with everything it has to say.
#ifndef REGATTA_TESTS_SUPPORT_SEEDS_H_
#define REGATTA_TESTS_SUPPORT_SEEDS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/scale.h"

namespace regatta {

struct SeedRange {
  uint64_t first = 1;
  uint64_t end = 1;     // not of it
  bool single = false;  // it is run again, for somebody who looks

  uint64_t count() const { return end - first; }
};

// `count` seeds at scale 1.
inline SeedRange SeedsToRun(int count) {
  if (const char* one = std::getenv("REGATTA_SIM_SEED")) {
    const uint64_t seed = std::strtoull(one, nullptr, 10);
    return {seed, seed + 1, true};
  }
  return {1, 1 + static_cast<uint64_t>(Scaled(count)), false};
}

// What runs this seed of the test that calls it again.
inline std::string ReplayCommand(uint64_t seed) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  return "REGATTA_SIM_SEED=" + std::to_string(seed) + " " + program +
         " --gtest_filter=" + test->test_suite_name() + "." + test->name();
}

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_SEEDS_H_
