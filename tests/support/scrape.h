// A daemon's page of metrics as a scraper reads it.
#ifndef REGATTA_TESTS_SUPPORT_SCRAPE_H_
#define REGATTA_TESTS_SUPPORT_SCRAPE_H_

#include <optional>
#include <string>

namespace regatta::testing {

// The body of GET http://ADDRESS/metrics over a connection of its own; "" when
// the answer is no 200 or none comes within 10 s.
std::string Scrape(const std::string& address);

// The head of the answer to HEAD http://ADDRESS PATH, as it came, and whatever
// came after it.
std::string Head(const std::string& address, const std::string& path);

// The value of the sample that is spelled so ("name", or "name{a=\"b\"}").
std::optional<double> Value(const std::string& body, const std::string& sample);

// The sum of all samples of a name.
double Sum(const std::string& body, const std::string& name);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_SCRAPE_H_
