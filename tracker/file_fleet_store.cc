#include "tracker/file_fleet_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/replace_file.h"
#include "base/secret.h"
#include "base/status_macros.h"
#include "base/sync_path.h"
#include "base/write_all.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "tracker/operator_state.h"

namespace regatta {
namespace {

using nlohmann::json;
constexpr int kFormat = 2;
// Rewritten when the appended changes have grown to this, and to twice what was
// left of them the last time.
constexpr int64_t kCompactBytes = int64_t{16} << 20;

absl::Status SystemError(std::string_view doing, const std::string& path) {
  const int error = errno;
  const std::string message =
      absl::StrCat(std::string(doing), " ", path, ": ", strerror(error));
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

absl::Status WriteAndSync(int fd, std::string_view bytes,
                          const std::string& path) {
  errno = WriteAll(fd, bytes);
  if (errno != 0) return SystemError("writing", path);
  if (fdatasync(fd) != 0) return SystemError("syncing", path);
  return absl::OkStatus();
}

json ToJson(const google::protobuf::Message& message) {
  std::string text;
  // Fails only on messages with Any in them, which ours are not.
  (void)google::protobuf::util::MessageToJsonString(message, &text);
  return json::parse(text, nullptr, false);
}

bool FromJson(const json& object, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(object.dump(), message,
                                                     options)
      .ok();
}

std::string Line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string AgentLine(const KnownAgent& agent) {
  json devices = json::array();
  for (const v1::DeviceInfo& device : agent.devices) {
    devices.push_back(ToJson(device));
  }
  return Line({{"agent", agent.agent_id},
               {"holds_leases", agent.holds_leases},
               {"lost", agent.lost},
               {"last_seen_unix_ms", agent.last_seen_unix_ms},
               {"boot_id", agent.boot_id},
               {"agent_version", agent.agent_version},
               {"compiler_version", agent.compiler_version},
               {"sandbox", agent.sandbox},
               {"devices", devices}});
}

std::string DeviceLine(const v1::DeviceStanding& device) {
  return Line({{"device", ToJson(device)}});
}

std::string EventLine(const v1::DeviceEvent& event) {
  return Line({{"event", ToJson(event)}});
}

// Fetches a field of the wanted type; false when it is absent or another type.
bool Get(const json& object, const char* name, std::string* out) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return false;
  *out = it->get<std::string>();
  return true;
}
bool Get(const json& object, const char* name, bool* out) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_boolean()) return false;
  *out = it->get<bool>();
  return true;
}
bool Get(const json& object, const char* name, int64_t* out) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_number_integer()) return false;
  *out = it->get<int64_t>();
  return true;
}

bool ParseAgent(const json& object, KnownAgent* agent) {
  if (!Get(object, "agent", &agent->agent_id) || agent->agent_id.empty() ||
      !Get(object, "holds_leases", &agent->holds_leases) ||
      !Get(object, "lost", &agent->lost) ||
      !Get(object, "last_seen_unix_ms", &agent->last_seen_unix_ms) ||
      !Get(object, "agent_version", &agent->agent_version) ||
      !Get(object, "compiler_version", &agent->compiler_version) ||
      !Get(object, "sandbox", &agent->sandbox)) {
    return false;
  }
  Get(object, "boot_id", &agent->boot_id);  // not in files of format 1
  auto devices = object.find("devices");
  if (devices == object.end() || !devices->is_array()) return false;
  for (const json& device : *devices) {
    if (!FromJson(device, &agent->devices.emplace_back())) return false;
  }
  return true;
}

std::string File(const std::string& dir) {
  return absl::StrCat(dir, "/fleet.jsonl");
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileFleetStore>> FileFleetStore::Open(
    const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    errno = error.value();
    return SystemError("creating the state folder", dir);
  }
  auto store = std::unique_ptr<FileFleetStore>(new FileFleetStore(dir));
  RETURN_IF_ERROR(store->Lock());
  RETURN_IF_ERROR(store->Load());
  RETURN_IF_ERROR(store->LoadSecret());
  ++store->epoch_;
  RETURN_IF_ERROR(store->Rewrite());
  return store;
}

FileFleetStore::~FileFleetStore() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

absl::Status FileFleetStore::Lock() {
  const std::string path = absl::StrCat(dir_, "/fleet.lock");
  lock_fd_ = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return SystemError("opening", path);
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError("locking", path);
    return absl::FailedPreconditionError(
        absl::StrCat("another tracker uses the state folder ", dir_,
                     "; stop it, or give this one another folder"));
  }
  return absl::OkStatus();
}

absl::Status FileFleetStore::LoadSecret() {
  constexpr size_t kBytes = 32;
  const std::string path = absl::StrCat(dir_, "/lease.key");
  auto secret = ReadSmallFile(path);
  if (!secret.ok() && !absl::IsNotFound(secret.status())) {
    return secret.status();
  }
  if (secret.ok() && secret->size() == kBytes) {
    lease_secret_ = *std::move(secret);
    return absl::OkStatus();
  }
  lease_secret_ = RandomSecret(kBytes);
  return ReplaceFile(path, lease_secret_, 0600);
}

absl::Status FileFleetStore::Load() {
  const std::string path = File(dir_);
  if (!std::filesystem::exists(path)) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  if (!file) return SystemError("opening", path);
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  auto corrupt = [&](int line, std::string_view what) {
    return absl::DataLossError(absl::StrCat(
        path, " line ", line, ": ", std::string(what),
        "; the file is left as it is. It holds no results: move it away to "
        "start with an empty fleet"));
  };
  int line_number = 0;
  int64_t format = 0;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string_view line(text.data() + begin, end - begin);
    if (++line_number > 1) {
      if (const std::string wrong = LoadLine(line); !wrong.empty()) {
        return corrupt(line_number, wrong);
      }
      continue;
    }
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) return corrupt(1, "not a JSON object");
    if (!Get(object, "format", &format) ||
        !Get(object, "tracker_epoch", &epoch_) || epoch_ < 1) {
      return corrupt(1, "no format and epoch");
    }
    if (format < 1 || format > kFormat) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " has format ", format,
                       "; this tracker reads formats 1 to ", kFormat));
    }
  }
  // The header is only ever written by a rename, so it cannot be cut short.
  if (line_number == 0) return corrupt(1, "the header is missing");
  if (format == 1) ApproveAll();
  return absl::OkStatus();
}

std::string FileFleetStore::LoadLine(std::string_view line) {
  const json object = json::parse(line, nullptr, false);
  if (!object.is_object()) return "not a JSON object";
  std::string forgotten;
  if (Get(object, "forget", &forgotten)) {
    agents_.erase(forgotten);
    return "";
  }
  if (Get(object, "forget_device", &forgotten)) {
    devices_.erase(forgotten);
    return "";
  }
  if (auto device = object.find("device"); device != object.end()) {
    v1::DeviceStanding standing;
    if (!FromJson(*device, &standing) || standing.device_id().empty()) {
      return "not a device";
    }
    devices_[standing.device_id()] = std::move(standing);
    return "";
  }
  if (auto event = object.find("event"); event != object.end()) {
    if (!FromJson(*event, &events_.emplace_back())) return "not an event";
    if (events_.size() > kKeptEvents) events_.pop_front();
    return "";
  }
  KnownAgent agent;
  if (!ParseAgent(object, &agent)) return "not an agent";
  agents_[agent.agent_id] = std::move(agent);
  return "";
}

void FileFleetStore::ApproveAll() {
  for (const auto& [id, agent] : agents_) {
    for (const v1::DeviceInfo& info : agent.devices) {
      v1::DeviceStanding standing =
          NewStanding(info.device_id(), id, agent.last_seen_unix_ms);
      SetTrust(v1::TRUST_UNKNOWN, "known before boards were approved",
               kByTracker, agent.last_seen_unix_ms, &standing);
      standing.set_canaries_owed(1);
      devices_[info.device_id()] = std::move(standing);
    }
  }
}

absl::Status FileFleetStore::Rewrite() {
  const std::string path = File(dir_);
  FileBeside fresh(path, path + ".new");
  std::string content =
      json{{"format", kFormat}, {"tracker_epoch", epoch_}}.dump() + "\n";
  for (const v1::DeviceEvent& event : events_) content += EventLine(event);
  for (const auto& [id, device] : devices_) content += DeviceLine(device);
  for (const auto& [id, agent] : agents_) content += AgentLine(agent);
  // It tells of a lab's boards and people: its owner's alone, unless somebody
  // has opened it to others.
  struct stat old = {};
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 0777 : 0600;
  errno = fresh.Open(mode);
  if (errno == 0) errno = fresh.Append(content);
  if (errno == 0) errno = fresh.Sync();
  if (errno == 0) errno = fresh.Commit();
  if (errno != 0) return SystemError("writing", path);
  fd_ = fresh.Take();
  bytes_ = static_cast<int64_t>(content.size());
  compact_at_ = std::max(kCompactBytes, 2 * bytes_);
  torn_ = false;
  errno = SyncPath(dir_);
  return errno == 0 ? absl::OkStatus() : SystemError("syncing", dir_);
}

std::vector<KnownAgent> FileFleetStore::Agents() const {
  std::vector<KnownAgent> agents;
  for (const auto& [id, agent] : agents_) agents.push_back(agent);
  return agents;
}

absl::Status FileFleetStore::Append(const std::string& lines) {
  if (torn_ || bytes_ > compact_at_) return Rewrite();
  absl::Status status = WriteAndSync(fd_.get(), lines, File(dir_));
  torn_ = !status.ok();
  if (status.ok()) bytes_ += static_cast<int64_t>(lines.size());
  return status;
}

absl::Status FileFleetStore::Put(absl::Span<const KnownAgent> agents) {
  std::string lines;
  for (const KnownAgent& agent : agents) {
    agents_[agent.agent_id] = agent;
    lines += AgentLine(agent);
  }
  return Append(lines);
}

absl::Status FileFleetStore::Forget(const std::string& agent_id) {
  agents_.erase(agent_id);
  return Append(Line({{"forget", agent_id}}));
}

std::vector<v1::DeviceStanding> FileFleetStore::Devices() const {
  std::vector<v1::DeviceStanding> devices;
  for (const auto& [id, device] : devices_) devices.push_back(device);
  return devices;
}

absl::Status FileFleetStore::PutDevices(
    absl::Span<const v1::DeviceStanding> devices,
    absl::Span<const v1::DeviceEvent> events) {
  std::string lines;
  for (const v1::DeviceEvent& event : events) {
    events_.push_back(event);
    lines += EventLine(event);
  }
  std::map<std::string, std::optional<v1::DeviceStanding>> before;
  for (const v1::DeviceStanding& device : devices) {
    const auto known = devices_.find(device.device_id());
    before.try_emplace(device.device_id(), known == devices_.end()
                                               ? std::nullopt
                                               : std::optional(known->second));
    devices_[device.device_id()] = device;
    lines += DeviceLine(device);
  }
  absl::Status status = Append(lines);
  if (!status.ok()) {
    for (auto& [id, standing] : before) {
      if (standing) {
        devices_[id] = *std::move(standing);
      } else {
        devices_.erase(id);
      }
    }
    events_.resize(events_.size() - events.size());
    return status;
  }
  while (events_.size() > kKeptEvents) events_.pop_front();
  return status;
}

absl::Status FileFleetStore::ForgetDevice(const std::string& device_id) {
  devices_.erase(device_id);
  return Append(Line({{"forget_device", device_id}}));
}

}  // namespace regatta
