#include "server/query/best_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/query/best_query.h"

namespace regatta {
namespace {

// What tells one request from another.
std::string Key(const v1::BestRequest& request) {
  return absl::StrCat(request.policy().threads(), " ",
                      static_cast<int>(request.policy().cache()), " ",
                      request.device_class().size(), " ",
                      request.target().size(), " ", request.device_class(),
                      request.target(), request.workload());
}

}  // namespace

BestFile::BestFile(std::string path, BestFileOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<BestFile>> BestFile::OpenSnapshot(
    const std::string& path, BestFileOptions options) {
  std::unique_ptr<BestFile> file(new BestFile(path, std::move(options)));
  ASSIGN_OR_RETURN(file->snapshot_, Snapshot::Open(path));
  RETURN_IF_ERROR(file->StartSnapshot());
  return file;
}

absl::Status BestFile::StartSnapshot() {
  const Snapshot* snapshot = snapshot_.get();
  context_.facts_of_class = [snapshot](const std::string& name) {
    return snapshot->FindFacts(name);
  };
  context_.is_simulated = [snapshot](const std::string& name) {
    const auto known = snapshot->FindClass(name);
    return known && known->simulated;
  };
  context_.measure_protocol = [snapshot](const std::string& name) {
    const auto known = snapshot->FindClass(name);
    return known ? known->measure_protocol : std::string();
  };
  context_.taken_by = std::string(snapshot->compiler_version());
  context_.taken_target = [snapshot](const std::string& name) {
    auto known = snapshot->FindClass(name);
    if (known && !known->target.empty()) return std::move(known->target);
    auto facts = snapshot->FindFacts(name);
    return facts ? std::move(facts->target) : std::string();
  };
  // Another release may read a text otherwise than the writer did.
  const auto own = options_.compiler_version(Target());
  if (own.ok() && *own == snapshot->compiler_version()) {
    context_.find_workload = [snapshot](std::string_view text) {
      return snapshot->FindText(text);
    };
  }
  return Start(snapshot);
}

absl::StatusOr<std::unique_ptr<BestFile>> BestFile::OpenLog(
    const std::string& path, BestFileOptions options) {
  std::unique_ptr<BestFile> file(new BestFile(path, std::move(options)));
  OpenOptions open;
  open.create = false;
  open.read_only = true;
  auto log = OpenTuningLog(path, open);
  if (!log.ok() && !absl::StrContains(log.status().message(), path)) {
    return Annotate(log.status(), path);
  }
  ASSIGN_OR_RETURN(file->log_, std::move(log));
  if (file->options_.read_whole_rows > 0) {
    const absl::Status read = file->ReadWhole();
    if (!read.ok() && !absl::IsOutOfRange(read)) return read;
  }
  RETURN_IF_ERROR(file->snapshot_ != nullptr ? file->StartSnapshot()
                                             : file->StartLog());
  return file;
}

absl::Status BestFile::ReadWhole() {
  SnapshotOptions whole;
  ASSIGN_OR_RETURN(whole.compiler_version, options_.compiler_version(Target()));
  whole.make_target =
      MakeTargetWith(options_.complete, options_.compiler_version);
  whole.max_rows = options_.read_whole_rows;
  ASSIGN_OR_RETURN(std::string bytes, WriteSnapshot(*log_, whole));
  ASSIGN_OR_RETURN(snapshot_, Snapshot::FromBytes(std::move(bytes), path_));
  return absl::OkStatus();
}

absl::Status BestFile::StartLog() {
  facts_ = std::make_unique<ClassFactsBook>(log_.get());
  context_.facts_of_class = [facts = facts_.get()](const std::string& name) {
    return facts->Find(name);
  };
  return Start(log_.get());
}

absl::StatusOr<std::unique_ptr<BestFile>> BestFile::Open(
    const std::string& path, BestFileOptions options) {
  if (Snapshot::LooksLikeOne(path)) {
    return OpenSnapshot(path, std::move(options));
  }
  return OpenLog(path, std::move(options));
}

absl::Status BestFile::Start(const BestSource* source) {
  ASSIGN_OR_RETURN(classes_, source->DeviceClasses(/*imported=*/true));
  context_.source = source;
  context_.memo = &memo_;
  context_.complete = options_.complete;
  context_.compiler_version = options_.compiler_version;
  context_.gives_binary = options_.gives_binary;
  context_.check_class = [this](const std::string& name, int threads) {
    return CheckClass(name, threads);
  };
  context_.target_of_class =
      [this](const std::string& name) -> std::optional<std::string> {
    if (options_.host && name == options_.host->device_class) {
      return options_.host->target;
    }
    if (snapshot_ == nullptr) return std::nullopt;
    auto known = snapshot_->FindClass(name);
    if (!known || known->target.empty()) return std::nullopt;
    return std::move(known->target);
  };
  return absl::OkStatus();
}

absl::Status BestFile::CheckClass(const std::string& name, int threads) const {
  if (!std::binary_search(classes_.begin(), classes_.end(), name)) {
    return absl::NotFoundError(absl::StrCat(
        "no device class '", name, "' in ", path_, "; it has ",
        classes_.empty() ? "none" : absl::StrJoin(classes_, ", ")));
  }
  int cores = 0;
  if (snapshot_ != nullptr) {
    const auto known = snapshot_->FindClass(name);
    if (known) cores = known->cores;
  }
  if (cores == 0 && options_.host && name == options_.host->device_class) {
    cores = options_.host->cores;
  }
  if (cores > 0 && threads > cores) {
    return absl::FailedPreconditionError(
        absl::StrCat(threads, " threads: a board of class ", name, " has ",
                     cores, " cores"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::BestAnswer> BestFile::Answer(const v1::BestRequest& request,
                                                int64_t now_unix_ms) {
  const std::string key = Key(request);
  std::shared_ptr<const v1::BestAnswer> known;
  {
    std::lock_guard lock(mutex_);
    const auto found = answers_.find(key);
    if (found != answers_.end()) known = found->second;
  }
  if (known == nullptr) {
    ASSIGN_OR_RETURN(v1::BestAnswer answer,
                     AnswerBestRequest(context_, request));
    known = std::make_shared<const v1::BestAnswer>(std::move(answer));
    std::lock_guard lock(mutex_);
    if (answers_.size() >= kMaxAnswers) answers_.clear();
    answers_.try_emplace(key, known);
  }
  v1::BestAnswer answer = *known;
  SetAge(now_unix_ms, &answer);
  return answer;
}

}  // namespace regatta
