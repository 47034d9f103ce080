// The tuning log's file: whether it opens, is whole and has room.
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/doctor/doctor.h"
#include "client/cli/format.h"
#include "storage/sqlite/log_file.h"
#include "storage/tuning_log.h"

namespace regatta::cli {
namespace {

namespace fs = std::filesystem;

// A day of records of a busy fleet, and a copy of a small log.
constexpr int64_t kLittleBytes = int64_t{2} << 30;
constexpr int64_t kTooLittleBytes = int64_t{200} << 20;

Finding ExamineSpace(const std::string& folder) {
  struct statvfs system = {};
  if (statvfs(folder.c_str(), &system) != 0) {
    return {Level::kFail, "free space",
            absl::StrCat(folder, " cannot be asked for its free space"), ""};
  }
  const int64_t free = static_cast<int64_t>(system.f_bavail) *
                       static_cast<int64_t>(system.f_frsize);
  const std::string what = absl::StrCat(FormatBytes(free), " free in ", folder);
  if (free >= kLittleBytes) return {Level::kOk, "free space", what, ""};
  return {free >= kTooLittleBytes ? Level::kWarn : Level::kFail, "free space",
          what + ": jobs stop when the log cannot be written",
          "df -h " + folder +
              "; make room, or move the log there (regatta log "
              "backup, restore)"};
}

// Small logs are read whole when they are opened, of large ones a part.
Finding ExamineContents(const std::string& path) {
  OpenOptions options;
  options.create = false;
  options.read_only = true;
  const auto log = OpenTuningLog(absl::StrCat("sqlite:", path), options);
  const std::string message(log.status().message());
  if (absl::IsDataLoss(log.status())) {
    return {
        Level::kFail, "opens", message,
        absl::StrCat("regatta log restore BACKUP --log ", path, " --force")};
  }
  if (absl::StrContains(message, "is held by")) {
    return {Level::kOk, "opens",
            message + "; `regatta log check` asks its server to read all", ""};
  }
  if (!log.ok()) return {Level::kFail, "opens", message, ""};
  const auto records = (*log)->CountRecords();
  if (!records.ok()) {
    return {Level::kFail, "opens", std::string(records.status().message()),
            absl::StrCat("regatta log check --log ", path)};
  }
  return {Level::kOk, "opens",
          absl::StrCat(path, ": ", *records,
                       " record(s); `regatta log check --log ", path,
                       "` reads all of them"),
          ""};
}

}  // namespace

std::vector<Finding> ExamineLog(const DoctorOptions& options) {
  if (options.log.empty()) {
    return {{Level::kOk, "place", "no tuning log is kept on this machine", ""}};
  }
  const auto path = sqlite::ResolveLogPath(options.log, /*write=*/false);
  if (!path.ok()) {
    return {{Level::kFail, "place", std::string(path.status().message()),
             "name a file on a local disk with --log FILE"}};
  }
  std::vector<Finding> findings = {
      {Level::kOk, "place", *path + " is on a local disk", ""}};
  if (access(path->c_str(), F_OK) == 0) {
    findings.push_back(ExamineContents(*path));
  } else {
    findings.push_back({Level::kWarn, "opens", *path + ": no such tuning log",
                        "start a server on it, which makes it"});
  }
  findings.push_back(ExamineSpace(fs::path(*path).parent_path().string()));
  return findings;
}

}  // namespace regatta::cli
