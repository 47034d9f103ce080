#include "client/cli/device_flags.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/cli/command.h"

namespace regatta::cli {

v1::DeviceSelector DeviceSelection::ToProto() const {
  v1::DeviceSelector selector;
  for (const std::string& id : ids) selector.add_device_ids(id);
  selector.set_device_class(device_class);
  const auto parsed = ParseLabels(labels, /*values_required=*/false);
  CHECK(parsed.ok()) << parsed.status();  // checked when it was read
  for (const auto& [name, value] : *parsed) {
    (*selector.mutable_labels())[name] = value;
  }
  return selector;
}

void AddDeviceSelection(CLI::App* command, DeviceSelection* devices) {
  command->add_option("ids", devices->ids, "Boards by id")
      ->type_name("ID")
      ->check(Utf8Text())
      ->check(NotEmpty());
  command
      ->add_option("--class", devices->device_class, "All boards of this class")
      ->type_name("CLASS")
      ->check(Utf8Text())
      ->check(NotEmpty());
  command
      ->add_option("--label", devices->labels,
                   "All boards with this label; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->check(Utf8Text())
      ->check(CLI::Validator(
          [](std::string& text) {
            const auto parsed = ParseLabels({text}, /*values_required=*/false);
            return std::string(parsed.status().message());
          },
          ""));
}

void AddHoldTime(CLI::App* command, HoldTime* time) {
  CLI::Option* length = command
                            ->add_option("--for", time->for_text,
                                         "How long it lasts: 90m, 2h, 1h30m")
                            ->type_name("DURATION");
  command
      ->add_option("--until", time->until_text,
                   "When it ends: \"2026-12-24 18:00\", local time")
      ->type_name("TIME")
      ->excludes(length);
}

absl::StatusOr<absl::Duration> HoldTime::Duration(absl::Time now) const {
  absl::Duration duration = absl::ZeroDuration();
  if (!for_text.empty()) {
    if (!absl::ParseDuration(for_text, &duration)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--for: '", for_text, "' is no duration; write 90m, 2h or 1h30m"));
    }
    if (duration < absl::Milliseconds(1) || duration > absl::Hours(24 * 365)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--for: '", for_text, "' must be from 1ms to a year (8760h)"));
    }
  }
  if (!until_text.empty()) {
    absl::Time until;
    std::string error;
    if (!absl::ParseTime("%Y-%m-%d %H:%M", until_text, absl::LocalTimeZone(),
                         &until, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until: '", until_text,
                       "' is no time; write \"2026-12-24 18:00\""));
    }
    duration = until - now;
    if (duration < absl::Milliseconds(1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until: ", until_text, " is over"));
    }
    if (duration > absl::Hours(24 * 365)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--until: ", until_text, " is more than a year away"));
    }
  }
  return duration;
}

absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& texts, bool values_required) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name.empty() || (values_required && equals == std::string::npos)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is no label; write NAME=VALUE"));
    }
    labels[name] = equals == std::string::npos ? "" : text.substr(equals + 1);
  }
  return labels;
}

std::string FormatWhen(int64_t unix_ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(unix_ms),
                          absl::LocalTimeZone());
}

}  // namespace regatta::cli
