#include "device_agent/remote/builder_key.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace regatta {
namespace {

std::string Trimmed(std::string text) {
  text.erase(std::min(text.find('#'), text.size()));
  return std::string(absl::StripAsciiWhitespace(text));
}

// The bytes of 64 hexadecimal digits.
std::optional<std::string> KeyBytes(const std::string& text) {
  const bool hexadecimal =
      text.size() == 2 * kSigningKeyBytes &&
      std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hexadecimal) return std::nullopt;
  return absl::HexStringToBytes(text);
}

absl::StatusOr<SigningKey> ReadKey(const std::string& path, int file) {
  struct stat info;
  if (fstat(file, &info) != 0) {
    return absl::InternalError(absl::StrCat(path, ": ", std::strerror(errno)));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "others than its owner may read ", path,
        ", which signs modules: chmod 600 it, or, if one may have, "
        "delete it and name the new key to the boards"));
  }
  std::string text(2 * kSigningKeyBytes + 1, '\0');
  const ssize_t size = read(file, text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, size)));
  const std::optional<std::string> bytes = KeyBytes(Trimmed(text));
  if (!bytes.has_value()) {
    return absl::DataLossError(absl::StrCat(
        path,
        " holds no key: restore it, or delete it, and a new key is made "
        "that the boards have to be told of"));
  }
  return SigningKey::FromPrivate(*bytes);
}

}  // namespace

absl::StatusOr<SigningKey> LoadOrMakeBuilderKey(const std::string& state_dir) {
  const std::string path = state_dir + "/builder.key";
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.valid()) return ReadKey(path, file.get());
  if (errno != ENOENT) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  // Whole before it has its name, so that a half-written one is never found;
  // whoever links first wins.
  const SigningKey key = SigningKey::Generate();
  const std::string temporary = absl::StrCat(path, ".", getpid());
  file = UniqueFd(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool written =
      file.valid() &&
      WriteAll(file.get(),
               absl::BytesToHexString(key.private_bytes()) + "\n") == 0 &&
      fsync(file.get()) == 0;
  const bool named = written && link(temporary.c_str(), path.c_str()) == 0;
  const int error = errno;
  unlink(temporary.c_str());
  if (!named && !(written && error == EEXIST)) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
  }
  if (named) return key;
  file = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return ReadKey(path, file.get());
}

std::string KeyName(const std::string& public_key) {
  return absl::StrCat("ed25519:", absl::BytesToHexString(public_key));
}

absl::StatusOr<std::vector<std::string>> ParseTrustedBuilders(
    const std::vector<std::string>& texts) {
  std::vector<std::string> keys;
  for (const std::string& text : texts) {
    if (const auto key = KeyBytes(text); key.has_value()) {
      keys.push_back(*key);
      continue;
    }
    std::ifstream file(text);
    if (!file) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--trust-builder: \"", text,
          "\" is neither a key (64 hexadecimal digits, from regatta-agent "
          "--print-builder-key on the builder) nor a file with keys"));
    }
    int number = 0;
    const size_t before = keys.size();
    for (std::string line; std::getline(file, line);) {
      ++number;
      line = Trimmed(line);
      if (line.empty()) continue;
      const auto key = KeyBytes(line);
      if (!key.has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--trust-builder: ", text, ", line ", number, ": \"",
                         line, "\" is no key of 64 hexadecimal digits"));
      }
      keys.push_back(*key);
    }
    if (keys.size() == before) {
      return absl::InvalidArgumentError(
          absl::StrCat("--trust-builder: ", text, " names no key"));
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace regatta
