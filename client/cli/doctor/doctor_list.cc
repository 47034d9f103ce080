#include "client/cli/doctor/doctor.h"

namespace regatta::cli {

absl::Span<const Area> Areas() {
  static constexpr Area kAreas[] = {
      {"toolchain", ExamineToolchain}, {"clocks", ExamineClocks},
      {"sandbox", ExamineSandbox},     {"server", ExamineServer},
      {"fleet", ExamineFleetFile},     {"log", ExamineLog},
  };
  return kAreas;
}

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "fail";
  }
  return "fail";
}

}  // namespace regatta::cli
