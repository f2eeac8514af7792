// The compiled part of Asio and Beast: BOOST_ASIO_SEPARATE_COMPILATION and BOOST_BEAST_SEPARATE_COMPILATION hold for
// the whole library, and the rest of it sees declarations only.
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
