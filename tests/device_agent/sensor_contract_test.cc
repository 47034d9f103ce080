// What every sensor in the list must hold, on this machine and on a made-up
// one, and what single sensors read.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device_agent/sensors/sensor_list.h"
#include "device_agent/sensors/sensor_set.h"
#include "gtest/gtest.h"

namespace regatta {
namespace {

// A file tree with all instruments; readings depend on `step`.
class FakeBoard {
 public:
  FakeBoard() {
    root_ = ::testing::TempDir() + "/board-XXXXXX";
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    Write("/sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "1500000");
    Write("/sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2500000");
    Write("/sys/class/thermal/thermal_zone0/temp", "41000");
    Write("/sys/class/hwmon/hwmon0/temp1_input", "55500");
    Write("/proc/loadavg", "0.75 0.5 0.25 1/100 4242");
    Ticks(/*user=*/100, /*idle=*/300);
    Throttles(3);
  }
  ~FakeBoard() { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void Throttles(int count) {
    Write("/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count",
          std::to_string(count));
  }
  // Of both processors together; what else there is stays as it is.
  void Ticks(int user, int idle) {
    Write("/proc/stat",
          "cpu  " + std::to_string(user) + " 0 10 " + std::to_string(idle) +
              " 20 0 5 5 90 0\ncpu2 1 2 3 4\ncpu3 1 2 3 4\nctxt 9");
  }
  SensorContext context() const { return {root_, {2, 3}}; }

 private:
  std::string root_;
};

std::map<std::string, v1::SensorReading> ByName(
    const std::vector<v1::SensorReading>& readings) {
  std::map<std::string, v1::SensorReading> by_name;
  for (const v1::SensorReading& reading : readings) {
    by_name[reading.name()] = reading;
  }
  return by_name;
}

class SensorContractTest : public ::testing::TestWithParam<SensorKind> {};

TEST_P(SensorContractTest, OnThisMachineItReadsOrSaysWhyNot) {
  auto sensor = GetParam().create({"", {0}});
  if (!sensor.ok()) {
    EXPECT_EQ(sensor.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(sensor.status().message().empty());
    return;
  }
  EXPECT_TRUE((*sensor)->Read().ok());
}

TEST_P(SensorContractTest, OnAFullBoardItReadsAndHasAUnit) {
  const FakeBoard board;
  auto sensor = GetParam().create(board.context());
  ASSERT_TRUE(sensor.ok()) << sensor.status();
  EXPECT_EQ((*sensor)->name(), GetParam().name);
  EXPECT_FALSE((*sensor)->unit().empty());
  const absl::StatusOr<double> value = (*sensor)->Read();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_GE(*value, 0);
}

TEST_P(SensorContractTest, OnABoardWithNothingItIsUnavailableWithAReason) {
  auto sensor = GetParam().create({"/no/such/board", {0}});
  EXPECT_EQ(sensor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(sensor.status().message().size(), 10u);
}

TEST_P(SensorContractTest, AnInstrumentThatGoesAwayIsUnavailable) {
  auto board = std::make_unique<FakeBoard>();
  auto sensor = GetParam().create(board->context());
  ASSERT_TRUE(sensor.ok());
  board.reset();
  EXPECT_EQ((*sensor)->Read().status().code(), absl::StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(AllSensors, SensorContractTest,
                         ::testing::ValuesIn(SensorKinds().begin(),
                                             SensorKinds().end()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(SensorListTest, NamesAreDistinct) {
  std::set<std::string> names;
  for (const SensorKind& kind : SensorKinds()) names.insert(kind.name);
  EXPECT_EQ(names.size(), SensorKinds().size());
}

TEST(SensorSetTest, ReadsEverythingBeforeAndAfter) {
  FakeBoard board;
  SensorSet sensors(board.context());
  EXPECT_TRUE(sensors.absent().empty());
  sensors.Before();
  board.Write("/proc/loadavg", "1.25 0.5 0.25 1/100 4242");
  auto readings = ByName(sensors.After());
  EXPECT_EQ(readings["cpu_frequency"].before(), 2e9);  // mean of 1.5 and 2.5
  EXPECT_EQ(readings["cpu_frequency"].unit(), "Hz");
  EXPECT_EQ(readings["temperature"].before(), 55.5);  // the hottest
  EXPECT_EQ(readings["load_average"].before(), 0.75);
  EXPECT_EQ(readings["load_average"].after(), 1.25);
  EXPECT_FALSE(sensors.Throttled());
}

TEST(SensorSetTest, AThrottleDuringTheRunShowsAndAnEarlierOneDoesNot) {
  FakeBoard board;
  SensorSet sensors(board.context());
  sensors.Before();
  board.Throttles(4);
  sensors.After();
  EXPECT_TRUE(sensors.Throttled());
  sensors.Before();
  sensors.After();
  EXPECT_FALSE(sensors.Throttled());
}

TEST(SensorSetTest, SaysWhatIsAbsent) {
  const SensorSet sensors({"/no/such/board", {0}});
  ASSERT_EQ(sensors.absent().size(), SensorKinds().size());
  for (size_t i = 0; i < SensorKinds().size(); ++i) {
    EXPECT_EQ(
        sensors.absent()[i].rfind(std::string(SensorKinds()[i].name) + ": ", 0),
        0u)
        << sensors.absent()[i];
  }
}

// Two processors; 30 of 40 ticks were used during the run, while it ran for 20:
// one and a half of them were busy.
TEST(BusySensorTest, SaysHowManyProcessorsWereBusyDuringTheRun) {
  FakeBoard board;
  SensorSet sensors(board.context());
  sensors.Before();
  board.Ticks(/*user=*/130, /*idle=*/310);
  EXPECT_EQ(ByName(sensors.After())["busy_processors"].after(), 1.5);
  // Within a tick.
  sensors.Before();
  EXPECT_EQ(ByName(sensors.After())["busy_processors"].after(), 1.5);
  board.Write("/proc/stat", "cpu  1 2");
  EXPECT_FALSE(ByName(sensors.After()).contains("busy_processors"));
}

TEST(FrequencySensorTest, FallsBackToCpuinfoOfTheRightProcessors) {
  FakeBoard board;
  std::filesystem::remove_all(board.context().root + "/sys/devices");
  board.Write("/proc/cpuinfo",
              "processor\t: 1\ncpu MHz\t\t: 9999.0\n\n"
              "processor\t: 2\ncpu MHz\t\t: 2596.5\n");
  SensorSet sensors(board.context());
  sensors.Before();
  EXPECT_EQ(ByName(sensors.After())["cpu_frequency"].before(), 2596.5e6);
}

}  // namespace
}  // namespace regatta
