// SPDX-License-Identifier: Apache-2.0
//
// All names of hosts lead to this machine, as they would in a test's DNS.
'use strict';

require('dns').lookup = (host, options, callback) => {
	callback = callback || options;
	return process.nextTick(() => options.all
		? callback(null, [{address: '127.0.0.1', family: 4}])
		: callback(null, '127.0.0.1', 4));
};
