// Boost.JSON without its library: the parts that are no templates.
#include <boost/json/src.hpp>
