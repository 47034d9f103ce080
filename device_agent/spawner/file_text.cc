#include "device_agent/spawner/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "base/unique_fd.h"

namespace regatta {

std::string FileText(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (file.valid()) {
    const ssize_t got = read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, got);
  }
  return text;
}

std::string FirstLine(const std::string& path) {
  const std::string text = FileText(path);
  return std::string(
      absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

bool WriteText(const std::string& path, std::string_view text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.valid() && write(file.get(), text.data(), text.size()) ==
                             static_cast<ssize_t>(text.size());
}

}  // namespace regatta
