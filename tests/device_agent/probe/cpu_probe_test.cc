#include "device_agent/probe/cpu_probe.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device_agent/probe/kernels.h"
#include "device_agent/probe/machine.h"
#include "device_agent/probe/noise_floor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

CpuProbeResult SomeResult() {
  CpuProbeResult result;
  result.caches = {32768, 1 << 20, 32 << 20};
  result.peak_flops_per_s = 1.5e11;
  result.bandwidth_bytes_per_s = 2.5e10;
  result.noise_floor = 0.0125;
  return result;
}

class ProbeFileTest : public testing::Test {
 protected:
  ProbeFileTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "probe-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    path_ = dir_ + "/probe";
  }
  ~ProbeFileTest() override { std::filesystem::remove_all(dir_); }
  std::string dir_, path_;
};

TEST_F(ProbeFileTest, ComesBackOnTheSameBootAndCoresOnly) {
  ASSERT_TRUE(SaveProbe(path_, "boot1", "0-1", SomeResult()).ok());
  const auto loaded = LoadProbe(path_, "boot1", "0-1");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->caches.l2_bytes, 1 << 20);
  EXPECT_DOUBLE_EQ(loaded->peak_flops_per_s, 1.5e11);
  EXPECT_DOUBLE_EQ(loaded->bandwidth_bytes_per_s, 2.5e10);
  EXPECT_DOUBLE_EQ(loaded->noise_floor, 0.0125);
  EXPECT_FALSE(LoadProbe(path_, "boot2", "0-1").ok());
  EXPECT_FALSE(LoadProbe(path_, "boot1", "0").ok());
  EXPECT_FALSE(LoadProbe(path_ + "x", "boot1", "0-1").ok());
}

TEST_F(ProbeFileTest, ADamagedFileIsNotBelieved) {
  CpuProbeResult bad = SomeResult();
  bad.peak_flops_per_s = 0;
  ASSERT_TRUE(SaveProbe(path_, "b", "0", bad).ok());
  EXPECT_FALSE(LoadProbe(path_, "b", "0").ok());
  ASSERT_TRUE(SaveProbe(path_, "b", "0", SomeResult()).ok());
  std::ofstream(path_, std::ios::app) << "garbage {{{\n";
  EXPECT_EQ(LoadProbe(path_, "b", "0").status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(NoiseFloorTest, IsThe95thPercentileOfTheDifferenceOfMedians) {
  // Side B is slower by 1 % in 18 sessions and by 10 % in two of twenty.
  int call = 0;
  const auto time_block = [&call] {
    const int session = call / 6;
    const bool side_b = call++ % 2 == 1;
    if (!side_b) return int64_t{100'000};
    return session < 18 ? int64_t{101'000} : int64_t{110'000};
  };
  // medians differ by 1 - 100/101 and 1 - 100/110; the 19th of 20 is the latter
  EXPECT_NEAR(NoiseFloor(time_block, 20, 3), 1 - 100.0 / 110, 1e-9);
  const auto steady = [] { return int64_t{5'000}; };
  EXPECT_EQ(NoiseFloor(steady, 20, 3), 0);
}

TEST(ProbeKernelsTest, LargerSetsAreSlower) {
  auto memory = ProbeMemory::Allocate(32 << 20);
  ASSERT_NE(memory, nullptr);
  Random random(1);
  const double small = LoadLatencyNs(*memory, 8 << 10, random);
  const double large = LoadLatencyNs(*memory, 32 << 20, random);
  EXPECT_GT(small, 0.2);
  EXPECT_LT(small, 20);
  EXPECT_GT(large, small * 1.5);
}

TEST(ProbeKernelsTest, MoreIterationsTakeProportionallyLonger) {
  const FmaKernel kernel = BestFmaKernel();
  const int64_t n = CalibrateFma(kernel, 500'000);
  int64_t once = TimeFma(kernel, n), twice = TimeFma(kernel, 2 * n);
  for (int i = 0; i < 10; ++i) {
    once = std::min(once, TimeFma(kernel, n));
    twice = std::min(twice, TimeFma(kernel, 2 * n));
  }
  const double ratio = static_cast<double>(twice) / static_cast<double>(once);
  EXPECT_GT(ratio, 1.5) << "the loop is not what is timed";
  EXPECT_LT(ratio, 2.7);
}

TEST(CpuProbeTest, FindsThisMachinePlausible) {
  CpuProbeResult result;
  int parts = 0;
  // A thread of its own: the probe pins it.
  std::thread([&] {
    CpuProbeOptions options;
    options.cpu = AllowedCpus()[0];
    options.memory_bytes = ReadMachine("").memory_bytes;
    options.exclusively = [&](const std::function<void()>& part) {
      ++parts;
      part();
      return absl::OkStatus();
    };
    const auto probed = ProbeCpu(options);
    ASSERT_TRUE(probed.ok()) << probed.status();
    result = *probed;
  }).join();
  // Peak, two of caches, bandwidth, and noise, again while it is disturbed.
  EXPECT_GE(parts, 5);
  EXPECT_LE(parts, 7);
  EXPECT_GE(result.caches.l1_bytes, 8 << 10);
  EXPECT_LE(result.caches.l1_bytes, 512 << 10);
  EXPECT_GT(result.caches.l2_bytes, result.caches.l1_bytes);
  if (result.caches.l3_bytes != 0) {
    EXPECT_GT(result.caches.l3_bytes, result.caches.l2_bytes);
  }
  EXPECT_GT(result.bandwidth_bytes_per_s, 1e8);
  EXPECT_LT(result.bandwidth_bytes_per_s, 1e12);
  EXPECT_GT(result.peak_flops_per_s, 1e8);
  EXPECT_LT(result.peak_flops_per_s, 1e12);
  EXPECT_GE(result.noise_floor, 0);
  RecordProperty("l1_bytes", absl::StrCat(result.caches.l1_bytes));
  std::cout << result.fma_kernel << " l1 " << result.caches.l1_bytes << " l2 "
            << result.caches.l2_bytes << " l3 " << result.caches.l3_bytes
            << " peak " << result.peak_flops_per_s / 1e9 << " GFLOP/s, read "
            << result.bandwidth_bytes_per_s / 1e9 << " GB/s, noise "
            << result.noise_floor << "\n";
}

TEST(CpuProbeTest, ReportsWhatKeepsItFromTheCores) {
  absl::Status status;
  std::thread([&] {
    CpuProbeOptions options;
    options.cpu = AllowedCpus()[0];
    options.memory_bytes = 1 << 30;
    options.exclusively = [](const std::function<void()>&) {
      return absl::UnavailableError("the lock is gone");
    };
    status = ProbeCpu(options).status();
  }).join();
  EXPECT_EQ(status, absl::UnavailableError("the lock is gone"));
}

TEST(CpuProbeTest, StopsWhenTold) {
  absl::Status status;
  std::thread([&] {
    std::atomic<bool> stop = true;
    CpuProbeOptions options;
    options.cpu = AllowedCpus()[0];
    options.memory_bytes = 1 << 30;
    options.stop = &stop;
    options.exclusively = [](const std::function<void()>& part) {
      ADD_FAILURE() << "measured all the same";
      return absl::OkStatus();
    };
    status = ProbeCpu(options).status();
  }).join();
  EXPECT_TRUE(absl::IsCancelled(status));
}

}  // namespace
}  // namespace regatta
