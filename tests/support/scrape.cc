#include "tests/support/scrape.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/host_port.h"
#include "base/unique_fd.h"
#include "base/write_all.h"

namespace regatta::testing {
namespace {

std::string Exchange(const std::string& address, const std::string& request) {
  const auto parts = SplitHostPort(address);
  if (!parts.ok()) return "";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  std::string host = parts->first;
  if (host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  } else {
    hints.ai_family = AF_INET;
  }
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(parts->second).c_str(), &hints,
                  &found) != 0) {
    return "";
  }
  const UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = {10, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const bool sent = connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                    WriteAll(fd.get(), request) == 0;
  freeaddrinfo(found);
  std::string answer;
  char bytes[4096];
  while (sent) {
    const ssize_t size = read(fd.get(), bytes, sizeof bytes);
    if (size <= 0) break;
    answer.append(bytes, static_cast<size_t>(size));
  }
  return answer;
}

}  // namespace

std::string Scrape(const std::string& address) {
  // Of HTTP 1.0: no chunks, closed at the end.
  const std::string answer =
      Exchange(address, "GET /metrics HTTP/1.0\r\nHost: test\r\n\r\n");
  const size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos || answer.find(" 200 ") > answer.find('\n')) {
    return "";
  }
  return answer.substr(head + 4);
}

std::string Head(const std::string& address, const std::string& path) {
  return Exchange(address, "HEAD " + path + " HTTP/1.0\r\nHost: test\r\n\r\n");
}

std::optional<double> Value(const std::string& body,
                            const std::string& sample) {
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > sample.size() && line.starts_with(sample) &&
        line[sample.size()] == ' ') {
      return std::strtod(line.c_str() + sample.size(), nullptr);
    }
  }
  return std::nullopt;
}

double Sum(const std::string& body, const std::string& name) {
  double sum = 0;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + " ") && !line.starts_with(name + "{")) {
      continue;
    }
    sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

}  // namespace regatta::testing
